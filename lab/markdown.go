package lab

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/p4lb/p4lb/lab/spec"
)

// Markdown writes how the targets of an experiment fared, with what it was and
// what was assumed, as a section of a document.
func (c *Comparison) Markdown(command string, took time.Duration) []byte {
	x := c.Experiment
	var b bytes.Buffer
	fmt.Fprintf(&b, "### %s\n\n%s.\n\n`%s`", x.Name, strings.TrimSuffix(x.About, "."), command)
	if took > 0 {
		fmt.Fprintf(&b, " (%s)", took.Round(time.Second))
	}
	outcomes := c.Judge()
	b.WriteString("\n\n| | target | printed | measured | verdict |\n|---|---|---|---|---|\n")
	for _, o := range outcomes {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", o.Figure, o.Name, o.Printed, o.measuredAt(x), verdictMark(o))
	}
	b.WriteString("\n")
	if line := Corrected(outcomes); line != "" {
		fmt.Fprintf(&b, "%s%s.\n\n", strings.ToUpper(line[:1]), line[1:])
	}
	list := func(head string, items []string) {
		if len(items) > 0 {
			fmt.Fprintf(&b, "%s: %s.\n\n", head, strings.Join(items, "; "))
		}
	}
	list("Assumed", x.Assumed)
	if x.Scaled != "" {
		list("Smaller than in the paper", []string{x.Scaled})
	}
	return b.Bytes()
}

// measuredAt is what was measured, with the load where there are several.
func (o *Outcome) measuredAt(x *spec.Experiment) string {
	several := false
	for i := range x.Cases {
		several = several || len(x.Cases[i].Loads) > 1
	}
	if several && o.Measured != "" {
		return fmt.Sprintf("%s, load %s", o.Measured, spec.Number(o.Load))
	}
	return o.Measured
}

// verdictMark is the verdict, bold where it is good, with the note.
func verdictMark(o Outcome) string {
	s := string(o.Verdict)
	if o.Verdict == Within || o.Verdict == Holds {
		s = "**" + s + "**"
	}
	if o.Note != "" {
		s += " (" + o.Note + ")"
	}
	return s
}

// MetricsPage is docs/metrics.md: what each number of a table means.
func MetricsPage() []byte {
	var b bytes.Buffer
	b.WriteString(`# Metrics

What p4lb lab and p4lb traffic measure: the columns of tables, of table.csv, and what experiments name in metrics and targets.
A flow counts if it begins after the warm-up; one that had not ended when the run did counts with the time until then.
Every number is the mean over the seeds, with the half-width of its 95 % confidence interval by Student's t; a difference between schemes is paired by seed, since the runs of a seed have the same flows.
The classes are short (up to 100 kB), medium (up to 1 MB) and long, unless the experiment has its own: fct-mean:short is the metric of one class.
"Upwards" is from leaves to spines.

| metric | unit | by class | better | what it is |
|---|---|---|---|---|
`)
	for _, m := range spec.Metrics() {
		byClass, better := "", "less"
		if m.ByClass {
			byClass = "yes"
		}
		if m.Higher {
			better = "more"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", m.Name, m.Unit, byClass, better, m.About)
	}
	return b.Bytes()
}
