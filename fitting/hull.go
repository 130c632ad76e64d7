package fitting

import "slices"

// A Point is an occupancy, in units of the register, and an interval in µs.
type Point struct {
	L float64 `json:"l"`
	T float64 `json:"t"`
}

// hull returns the convex hull of the training rows, counter-clockwise from its
// leftmost point.
func (s *Rows) hull(of split) []Point {
	var hull []Point
	row := 0
	for _, block := range s.blocks {
		points := slices.Clone(hull)
		for _, r := range block {
			p := Point{r.L, r.T}
			// Only the extremes of consecutive rows with the same occupancy can be
			// corners.
			if of.of[row] != inTest && (len(hull) < 3 || !inside(hull, p)) {
				points = append(points, p)
			}
			row++
		}
		hull = convexHull(points)
	}
	return hull
}

// convexHull implements Andrew's monotone chain. It sorts the points.
func convexHull(points []Point) []Point {
	slices.SortFunc(points, func(a, b Point) int { return compareRows(Row{L: a.L, T: a.T}, Row{L: b.L, T: b.T}) })
	points = slices.Compact(points)
	if len(points) < 3 {
		return points
	}
	lower := chain(points)
	slices.Reverse(points)
	upper := chain(points)
	return append(lower[:len(lower)-1], upper[:len(upper)-1]...)
}

// chain keeps the points at which the polyline turns left.
func chain(points []Point) []Point {
	var list []Point
	for _, p := range points {
		for len(list) > 1 && cross(list[len(list)-2], list[len(list)-1], p) <= 0 {
			list = list[:len(list)-1]
		}
		list = append(list, p)
	}
	return list
}

// cross returns a positive number if the path from a over b to c turns left.
func cross(a, b, c Point) float64 {
	return (b.L-a.L)*(c.T-a.T) - (b.T-a.T)*(c.L-a.L)
}

// inside reports whether p lies in a convex polygon or on its edge.
func inside(hull []Point, p Point) bool {
	if len(hull) < 3 {
		return slices.Contains(hull, p)
	}
	for i, a := range hull {
		if cross(a, hull[(i+1)%len(hull)], p) < 0 {
			return false
		}
	}
	return true
}
