package lab

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

func TestY(t *testing.T) {
	text, err := os.ReadFile(os.Getenv("EXP"))
	if err != nil {
		t.Skip()
	}
	x, err := Load("x.yaml", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{Dir: os.Getenv("OUT"), Progress: func(p Progress) {
		fmt.Printf("%d/%d %s %v hops=%d %.2f Mhops/s %v\n", p.Done, p.Of, p.Name, p.Took.Round(time.Millisecond), p.Hops, float64(p.Hops)/p.Took.Seconds()/1e6, p.Err)
	}}
	c, err := r.Run(context.Background(), x)
	fmt.Println(err)
	if c != nil {
		c.Keep(os.Getenv("OUT"))
		for _, l := range c.Table() {
			for _, f := range l {
				fmt.Printf("%-26s", f)
			}
			fmt.Println()
		}
		for _, res := range c.Results[:1] {
			fmt.Println(res.Metrics, res.Lost)
		}
	}
}
