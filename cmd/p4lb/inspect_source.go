package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/cli"
	"github.com/p4lb/p4lb/controller/inspect"
	"github.com/p4lb/p4lb/controller/plan"
	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/plain"
)

// A round is what all switches held at one moment.
type round struct {
	scheme   string
	fabric   string
	time     time.Duration
	wall     time.Time // zero in virtual time
	switches []inspect.Result
	roles    map[string]string
	contents bool // tables and counters are there too
}

// A roundSource gives rounds: from switches, or from a recording. It returns
// io.EOF after the last.
type roundSource interface {
	next(ctx context.Context) (*round, error)
	// topology is what the switches are in, nil where it is not known.
	topology() *fabric.Topology
}

// source is where rounds come from, and how that ends.
func (j *inspectJob) source(ctx context.Context, args []string) (roundSource, func(), error) {
	if j.replay != "" {
		return j.openReplay(args)
	}
	s, err := j.reach.open(ctx, j.c, args)
	if err != nil {
		return nil, nil, err
	}
	if err := s.reachable(j.c); err != nil {
		s.close()
		return nil, nil, err
	}
	survey, err := j.survey(s)
	if err != nil {
		s.close()
		return nil, nil, err
	}
	source := &surveySource{site: s, survey: survey, every: j.every}
	if !j.contents && !(s.project && len(j.registers) == 0 && j.record == "" && j.page.listen == "") {
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

// survey makes an inspector for each switch. Switches of a role that lacks a
// register are left out, unless all do.
func (j *inspectJob) survey(s *site) (*inspect.Survey, error) {
	var list []*inspect.Inspector
	var first error
	for _, sw := range s.switches {
		in, err := inspect.New(sw.node, sw.registers, j.options(len(s.switches)))
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

func (j *inspectJob) options(switches int) inspect.Options {
	o := inspect.Options{Registers: j.registers, NoFlows: j.noFlows}
	if j.record == "" {
		o.FlowsEvery = inspect.FlowsEvery(switches)
	}
	return o
}

// explained gives an error of the controller its hint.
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
	begun  bool // there has been a round

	contents contents // nil: tables and counters are left out
}

func (s *surveySource) next(ctx context.Context) (*round, error) {
	if err := pause(ctx, time.Until(s.due)); err != nil {
		return nil, err
	}
	s.due = time.Now().Add(s.every)
	short, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	r := &round{scheme: s.site.scheme, fabric: s.site.fabric, switches: s.survey.Round(short), roles: map[string]string{}}
	for _, in := range s.survey.Inspectors() {
		r.roles[in.Node().Name] = string(in.Node().Role)
	}
	if s.contents != nil {
		r.contents = true
		s.contents.add(short, r)
	}
	for _, result := range r.switches {
		if result.Snapshot != nil {
			r.time, r.wall = result.Snapshot.Time, result.Snapshot.Wall
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := r.failure(); err != nil && !s.begun {
		return nil, err
	}
	s.begun = true // who watches waits for switches that have vanished
	return r, nil
}

func (s *surveySource) topology() *fabric.Topology { return s.site.topology }

func (s *replaySource) topology() *fabric.Topology { return nil }

// idle reports whether no switch has had anything to do.
func (r *round) idle() bool {
	return !slices.ContainsFunc(r.switches, func(s inspect.Result) bool { return s.Snapshot == nil || !s.Snapshot.Idle() })
}

// failure is the error of a round in which no switch answered.
func (r *round) failure() error {
	var first error
	for _, result := range r.switches {
		if result.Err == nil {
			return nil
		}
		if first == nil {
			first = result.Err
		}
	}
	return vanished(first)
}

// A replaySource plays a recording, at the speed it was recorded with where
// paced is set.
type replaySource struct {
	recording *inspect.Recording
	only      []string
	paced     bool
	start     time.Time
	first     time.Duration
}

func (j *inspectJob) openReplay(only []string) (roundSource, func(), error) {
	file, err := plain.OpenFile(j.replay)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", j.replay, err)
	}
	end := func() { file.Close() }
	info, err := file.Stat()
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("reading %s: %w", j.replay, cli.BareError(err))
	}
	recording, err := inspect.OpenRecording(j.replay, file, info.Size())
	if err != nil {
		end()
		return nil, nil, cli.Hinted(err, "want a file that p4lb inspect --record has written")
	}
	return &replaySource{recording: recording, only: only, paced: j.watch || j.page.listen != ""}, end, nil
}

func (s *replaySource) next(ctx context.Context) (*round, error) {
	list, err := s.recording.Round()
	if err != nil {
		return nil, err
	}
	r := &round{scheme: list[0].Scheme, time: list[0].Time, wall: list[0].Wall, roles: map[string]string{}}
	for _, snapshot := range list {
		if len(s.only) == 0 || slices.Contains(s.only, snapshot.Switch) {
			r.switches = append(r.switches, inspect.Result{Switch: snapshot.Switch, Snapshot: snapshot})
			r.roles[snapshot.Switch] = snapshot.Role
		}
	}
	if s.start.IsZero() {
		s.start, s.first = time.Now(), r.time
	}
	if s.paced {
		if err := pause(ctx, time.Until(s.start.Add(r.time-s.first))); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// pause waits, but no longer than ctx lasts.
func pause(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
