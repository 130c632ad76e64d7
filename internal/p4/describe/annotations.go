package describe

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// annotations returns the unstructured annotations as they are written in the
// source. It leaves out names, ids and documentation, because P4Info has fields for
// them, and the annotations in skip.
func (g *infoGen) annotations(as syntax.Annotations, skip ...string) []string {
	var out []string
	for _, a := range as {
		if structuredKind(a) || slices.Contains(skip, a.Name.Value) {
			continue
		}
		switch a.Name.Value {
		case "name", "id", "brief", "description":
			continue
		}
		out = append(out, annotationText(a, g.arch))
	}
	return out
}

func structuredKind(a *syntax.Annotation) bool {
	return a.Kind == syntax.AnnotationExprs || a.Kind == syntax.AnnotationKeyValues
}

func annotationText(a *syntax.Annotation, arch string) string {
	text := "@" + a.Name.Value
	if len(a.Tokens) == 0 {
		return text
	}
	words := lists.Map(a.Tokens, func(t syntax.Token) string { return t.Text })
	if expressionLists[a.Name.Value] && arch != "v1model" {
		return text + "(" + strings.ReplaceAll(strings.Join(words, ""), ",", ", ") + ")"
	}
	return text + "(" + strings.Join(words, " ") + ")"
}

// expressionLists are the annotations that p4c's Tofino backend parses and prints
// as lists of expressions. It prints others token by token.
var expressionLists = map[string]bool{"symmetric": true, "alpm_atcam_exclude_field_msbs": true, "stage": true}

// structured returns the annotations of the form @name[…].
func (g *infoGen) structured(as syntax.Annotations) []*configv1.StructuredAnnotation {
	var out []*configv1.StructuredAnnotation
	for _, a := range as {
		if !structuredKind(a) {
			continue
		}
		s := &configv1.StructuredAnnotation{Name: a.Name.Value}
		switch {
		case len(a.Fields) > 0:
			list := &configv1.KeyValuePairList{}
			for _, f := range a.Fields {
				list.KvPairs = append(list.KvPairs, &configv1.KeyValuePair{Key: f.Name.Value, Value: g.annotationValue(f.Value)})
			}
			s.Body = &configv1.StructuredAnnotation_KvPairList{KvPairList: list}
		case len(a.Exprs) > 0:
			list := &configv1.ExpressionList{}
			for _, x := range a.Exprs {
				list.Expressions = append(list.Expressions, g.annotationValue(x))
			}
			s.Body = &configv1.StructuredAnnotation_ExpressionList{ExpressionList: list}
		}
		out = append(out, s)
	}
	return out
}

func (g *infoGen) annotationValue(x syntax.Expr) *configv1.Expression {
	switch v := g.constant(x).(type) {
	case bool:
		return &configv1.Expression{Value: &configv1.Expression_BoolValue{BoolValue: v}}
	case string:
		return &configv1.Expression{Value: &configv1.Expression_StringValue{StringValue: v}}
	case *big.Int:
		if v.IsInt64() {
			return &configv1.Expression{Value: &configv1.Expression_Int64Value{Int64Value: v.Int64()}}
		}
		g.errorf(x, "a number in a structured annotation must fit in 64 bits; write it as a string")
	default:
		g.errorf(x, "a value in a structured annotation must be a constant number, boolean or string")
	}
	return &configv1.Expression{}
}

// constant evaluates an expression in an annotation. The checker does not evaluate
// these.
func (g *infoGen) constant(x syntax.Expr) any {
	switch x := syntax.Unparen(x).(type) {
	case *syntax.IntLit:
		return x.Value
	case *syntax.BoolLit:
		return x.Value
	case *syntax.StringLit:
		return x.Value
	case *syntax.UnaryExpr:
		if v, ok := g.constant(x.X).(*big.Int); ok && x.Op == syntax.Neg {
			return new(big.Int).Neg(v)
		}
		return nil
	case *syntax.BinaryExpr:
		a, ok1 := g.constant(x.X).(*big.Int)
		b, ok2 := g.constant(x.Y).(*big.Int)
		if ok1 && ok2 {
			return types.Fold(x.Op, a, b, types.Int, types.Int)
		}
		return nil
	case *syntax.Name:
		if o := g.info.Top[x.Value]; o != nil && o.Kind == types.ConstObj {
			return o.Value
		}
		return nil
	default:
		return g.view.fold(x, &scope{})
	}
}

// number returns the number in an annotation such as @id(7).
func (g *infoGen) number(a *syntax.Annotation) (*big.Int, bool) {
	if a == nil || len(a.Exprs) != 1 {
		return nil, false
	}
	v, ok := g.constant(a.Exprs[0]).(*big.Int)
	return v, ok
}

func (g *infoGen) idOf(as syntax.Annotations) (uint32, bool) {
	a := as.Get("id")
	if a == nil {
		return 0, false
	}
	v, ok := g.number(a)
	if !ok || v.Sign() < 0 || v.BitLen() > 32 {
		g.errorf(a, "@id wants an unsigned 32-bit number")
		return 0, false
	}
	return uint32(v.Uint64()), true
}

func (g *infoGen) doc(as syntax.Annotations) *configv1.Documentation {
	if as.Get("brief") == nil && as.Get("description") == nil {
		return nil
	}
	doc := &configv1.Documentation{}
	doc.Brief, _ = as.Text("brief")
	doc.Description, _ = as.Text("description")
	return doc
}

// addPkgInfo fills in the package's description from the annotations of main.
func (g *infoGen) addPkgInfo() {
	main := mainDecl(g.info)
	if main == nil {
		return
	}
	p := &configv1.PkgInfo{
		Arch: g.arch, Doc: g.doc(main.Annotations),
		Annotations:           g.annotations(main.Annotations, "pkginfo", "platform_property"),
		StructuredAnnotations: g.structured(main.Annotations),
	}
	g.out.PkgInfo = p
	fields := map[string]*string{
		"name": &p.Name, "version": &p.Version, "organization": &p.Organization, "contact": &p.Contact, "url": &p.Url, "arch": &p.Arch,
	}
	if a := main.Annotations.Get("pkginfo"); a != nil {
		for _, kv := range g.keyValues(a) {
			s, ok := kv.value.(string)
			switch {
			case fields[kv.key] == nil:
				g.warnf(a, "unknown key %s in @pkginfo", kv.key)
			case !ok:
				g.errorf(a, "the value of %s in @pkginfo must be a string", kv.key)
			default:
				*fields[kv.key] = s
			}
		}
	}
	if a := main.Annotations.Get("platform_property"); a != nil {
		g.addPlatform(p, a)
	}
}

func mainDecl(info *types.Info) *syntax.InstDecl {
	o := info.Top["main"]
	if o == nil {
		return nil
	}
	d, _ := o.Decl.(*syntax.InstDecl)
	return d
}

func (g *infoGen) addPlatform(p *configv1.PkgInfo, a *syntax.Annotation) {
	q := &configv1.PlatformProperties{}
	p.PlatformProperties = q
	fields := map[string]*int32{
		"multicast_group_table_size":                   &q.MulticastGroupTableSize,
		"multicast_group_table_total_replicas":         &q.MulticastGroupTableTotalReplicas,
		"multicast_group_table_max_replicas_per_entry": &q.MulticastGroupTableMaxReplicasPerEntry,
	}
	for _, kv := range g.keyValues(a) {
		n, ok := kv.value.(*big.Int)
		switch {
		case fields[kv.key] == nil:
			g.warnf(a, "unknown key %s in @platform_property", kv.key)
		case !ok || !n.IsInt64():
			g.errorf(a, "the value of %s in @platform_property must be a number", kv.key)
		default:
			*fields[kv.key] = int32(n.Int64())
		}
	}
}

// A keyValue is a pair key = value in an annotation.
type keyValue struct {
	key   string
	value any
}

// keyValues parses @name[k = v, …] or @name(k = v, …).
func (g *infoGen) keyValues(a *syntax.Annotation) []keyValue {
	list := lists.Map(a.Fields, func(f *syntax.NamedExpr) keyValue { return keyValue{f.Name.Value, g.constant(f.Value)} })
	for t := a.Tokens; len(t) > 0; {
		if len(t) < 3 || !t[0].IsName() || t[1].Text != "=" || len(t) > 3 && t[3].Text != "," {
			g.errorf(a, "@%s wants a list of key = value", a.Name.Value)
			break
		}
		list = append(list, keyValue{t[0].Text, tokenValue(t[2])})
		t = t[min(4, len(t)):]
	}
	return list
}

// tokenValue returns the value of a literal.
func tokenValue(t syntax.Token) any {
	switch {
	case t.IsString():
		if s, err := strconv.Unquote(t.Text); err == nil {
			return s
		}
		return strings.Trim(t.Text, `"`)
	case t.IsInt():
		if n, ok := new(big.Int).SetString(t.Text, 0); ok {
			return n
		}
	}
	return nil
}
