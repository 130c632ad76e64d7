package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A roundSource returns rounds from switches or from a recording, and io.EOF after the last.
type roundSource interface {
	next(ctx context.Context) (*view.Round, error)
	// topology returns the topology of the switches, or nil if it is unknown.
	topology() *fabric.Topology
}

// source returns the source of rounds, and a function that closes it.
func (j *inspectJob) source(ctx context.Context, args []string) (roundSource, func(), error) {
	if j.replay != "" {
		file, err := plain.OpenFile(j.replay)
		if err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", j.replay, err)
		}
		end := func() { file.Close() }
		info, err := file.Stat()
		if err != nil {
			end()
			return nil, nil, fmt.Errorf("reading %s: %w", j.replay, plain.Bare(err))
		}
		recording, err := inspect.OpenRecording(j.replay, file, info.Size())
		if err != nil {
			end()
			return nil, nil, cli.Hinted(err, "want a file that p4lb inspect --record has written")
		}
		return &replaySource{recording: recording, only: args, paced: j.watch || j.page.Listen != ""}, end, nil
	}
	s, err := j.reach.open(ctx, j.c, args)
	if err != nil {
		return nil, nil, err
	}
	survey, err := j.survey(s)
	if err != nil {
		s.close()
		return nil, nil, err
	}
	source := &surveySource{site: s, survey: survey, every: j.every}
	if !j.contents && !(s.project && len(j.registers) == 0 && j.record == "" && j.page.Listen == "") {
		return source, s.close, nil
	}
	if source.contents, err = s.openContents(ctx); err != nil {
		s.close()
		return nil, nil, err
	}
	return source, func() {
		source.contents.close()
		s.close()
	}, nil
}

// survey returns an inspector for each switch. Switches whose role lacks a requested register are
// omitted, unless all lack it.
func (j *inspectJob) survey(s *site) (*inspect.Survey, error) {
	var list []*inspect.Inspector
	var first error
	for _, sw := range s.switches {
		opts := inspect.Options{Registers: j.registers, NoFlows: j.noFlows}
		if j.record == "" {
			opts.FlowsEvery = inspect.FlowsEvery(len(s.switches))
		}
		in, err := inspect.New(sw.node, sw.registers, opts)
		if err != nil {
			first = errors.Join(first, err)
			continue
		}
		list = append(list, in)
	}
	if len(list) == 0 {
		return nil, explained(first)
	}
	return inspect.NewSurvey(list), nil
}

// explained adds a hint to an error of the controller.
func explained(err error) error {
	var known *plan.Error
	if errors.As(err, &known) && known.Hint != "" {
		return cli.Hinted(known, "%s", known.Hint)
	}
	return err
}

// A surveySource reads switches, with a pause between rounds.
type surveySource struct {
	site   *site
	survey *inspect.Survey
	every  time.Duration
	due    time.Time
	begun  bool         // the first round has been read
	strain *strainWatch // nil: no warnings about the machine

	contents contents // nil: tables and counters are left out
}

func (s *surveySource) next(ctx context.Context) (*view.Round, error) {
	if err := plain.Pause(ctx, time.Until(s.due)); err != nil {
		return nil, err
	}
	s.due = time.Now().Add(s.every)
	short, cancel := context.WithTimeout(ctx, view.ReachTimeout)
	defer cancel()
	r := &view.Round{Scheme: s.site.scheme, Fabric: s.site.fabric, Switches: s.survey.Round(short), Roles: map[string]string{}}
	for _, in := range s.survey.Inspectors() {
		r.Roles[in.Node().Name] = string(in.Node().Role)
	}
	if s.contents != nil {
		r.Contents = true
		s.contents.add(short, r)
	}
	for _, result := range r.Switches {
		if result.Snapshot != nil {
			r.Time, r.Wall = result.Snapshot.Time, result.Snapshot.Wall
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := silence(r); err != nil && !s.begun {
		return nil, err
	}
	if s.strain != nil {
		s.strain.see(r, time.Now(), readCPU)
	}
	s.begun = true // the screen waits for switches that have vanished
	return r, nil
}

func (s *surveySource) topology() *fabric.Topology { return s.site.topology }

func (s *replaySource) topology() *fabric.Topology { return nil }

// silence returns the error of a round in which no switch answered.
func silence(r *view.Round) error {
	var first error
	for _, result := range r.Switches {
		if result.Err == nil {
			return nil
		}
		if first == nil {
			first = result.Err
		}
	}
	return vanished(first)
}

// A replaySource plays a recording. If paced is set, it plays at the speed of the
// recording.
type replaySource struct {
	recording *inspect.Recording
	only      []string
	paced     bool
	start     time.Time
	first     time.Duration
}

func (s *replaySource) next(ctx context.Context) (*view.Round, error) {
	list, err := s.recording.Round()
	if err != nil {
		return nil, err
	}
	r := &view.Round{Scheme: list[0].Scheme, Time: list[0].Time, Wall: list[0].Wall, Roles: map[string]string{}}
	for _, snapshot := range list {
		if len(s.only) == 0 || slices.Contains(s.only, snapshot.Switch) {
			r.Switches = append(r.Switches, inspect.Result{Switch: snapshot.Switch, Snapshot: snapshot})
			r.Roles[snapshot.Switch] = snapshot.Role
		}
	}
	if s.start.IsZero() {
		s.start, s.first = time.Now(), r.Time
	}
	if s.paced {
		if err := plain.Pause(ctx, time.Until(s.start.Add(r.Time-s.first))); err != nil {
			return nil, err
		}
	}
	return r, nil
}
