package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// A demand contains the resources that a program uses in a pipe, summed over
// all stages.
type demand struct {
	SRAM         int `json:"sram_blocks"`
	TCAM         int `json:"tcam_blocks"`
	Exact        int `json:"exact_crossbar_bytes"`
	Ternary      int `json:"ternary_crossbar_bytes"`
	HashBits     int `json:"hash_bits"`
	Gateways     int `json:"gateways"`
	VLIW         int `json:"vliw_instructions"`
	StatefulALUs int `json:"stateful_alus"`
}

// resourceLog is the part of the compiler's resources.json that p4lb reads.
type resourceLog struct {
	Resources struct {
		MAU struct {
			Stages []struct {
				RAMs struct {
					SRAMs []json.RawMessage `json:"srams"`
				} `json:"rams"`
				TCAMs struct {
					TCAMs []json.RawMessage `json:"tcams"`
				} `json:"tcams"`
				Crossbar struct {
					Bytes []struct {
						Type string `json:"byte_type"`
					} `json:"bytes"`
				} `json:"xbar_bytes"`
				Hash struct {
					Bits []json.RawMessage `json:"bits"`
				} `json:"hash_bits"`
				Gateways struct {
					Gateways []json.RawMessage `json:"gateways"`
				} `json:"gateways"`
				VLIW struct {
					Instructions []json.RawMessage `json:"instructions"`
				} `json:"vliw"`
				Meters struct {
					Meters []json.RawMessage `json:"meters"`
				} `json:"meter_alus"`
			} `json:"mau_stages"`
		} `json:"mau"`
	} `json:"resources"`
}

// demandOf reads the compiler's resources.json.
func demandOf(name string) (*demand, error) {
	text, err := plain.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the compiler's resources: %w", plain.Bare(err))
	}
	var log resourceLog
	if err := json.Unmarshal(text, &log); err != nil {
		line, why := plain.JSONError(text, err)
		return nil, fmt.Errorf("reading the compiler's resources: %s:%d: %w", name, line, why)
	}
	d := &demand{}
	for _, s := range log.Resources.MAU.Stages {
		d.SRAM += len(s.RAMs.SRAMs)
		d.TCAM += len(s.TCAMs.TCAMs)
		d.HashBits += len(s.Hash.Bits)
		d.Gateways += len(s.Gateways.Gateways)
		d.VLIW += len(s.VLIW.Instructions)
		d.StatefulALUs += len(s.Meters.Meters)
		for _, b := range s.Crossbar.Bytes {
			if b.Type == "ternary" {
				d.Ternary++
			} else {
				d.Exact++
			}
		}
	}
	return d, nil
}

var (
	stageLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^stage (\d+) (ingress|egress):`)
	})
	tableHead = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^  (?:exact_match|ternary_match|atcam_match|hash_action|gateway|proxy_hash|phase0_match) `)
	})
)

// stagesOf returns the number of stages up to the last one with a table, for
// ingress and egress, from the assembly that the compiler writes.
func stagesOf(name string) (ingress, egress int, err error) {
	text, err := plain.ReadFile(name)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the compiler's assembly: %w", plain.Bare(err))
	}
	var count *int
	stage := 0
	for line := range strings.Lines(string(text)) {
		if f := stageLine().FindStringSubmatch(line); f != nil {
			stage, _ = strconv.Atoi(f[1])
			if count = &ingress; f[2] == "egress" {
				count = &egress
			}
		} else if line[0] != ' ' && line[0] != '\n' {
			count = nil
		} else if count != nil && tableHead().MatchString(line) {
			*count = max(*count, stage+1)
		}
	}
	return ingress, egress, nil
}
