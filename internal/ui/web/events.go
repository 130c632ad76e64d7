package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// A position is the progress of a reader.
type position struct {
	frame  int // the number of the next frame
	event  int // number of the next event
	series int // version of the last series sent
	drawn  int // number of the last figures sent
}

// A letter is a group of messages to one reader.
type letter struct {
	parts [][]byte
	ended bool
}

// serveEvents sends frames to one page until it disconnects.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		w.Header().Set("Retry-After", "30")
		http.Error(w, fmt.Sprintf("too many open pages: at most %d", maxReaders), http.StatusServiceUnavailable)
		return
	}
	defer s.leave()
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	send := func(parts ...[]byte) bool {
		control.SetWriteDeadline(time.Now().Add(readerTime)) // if unsupported, a write to a closed connection fails instead
		for _, p := range parts {
			if _, err := w.Write(p); err != nil {
				return false
			}
		}
		return control.Flush() == nil
	}
	if !send(message("fabric", s.opts.Fabric)) {
		return
	}
	at := s.start()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		l, changed := s.read(&at)
		if len(l.parts) > 0 && !send(l.parts...) {
			return
		}
		if l.ended {
			send(message("end", nil))
			return
		}
		select {
		case <-changed:
		case <-beat.C:
			if !send([]byte(": \n\n")) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// message encodes a server-sent event.
func message(kind string, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // impossible: the values are numbers and texts
	}
	return framed(kind, text)
}

func framed(kind string, text []byte) []byte {
	b := make([]byte, 0, len(text)+len(kind)+16)
	b = append(append(append(b, "event: "...), kind...), "\ndata: "...)
	return append(append(b, text...), "\n\n"...)
}

// enter registers a reader, unless there are too many.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers >= maxReaders {
		return false
	}
	s.readers++
	select {
	case s.asked <- struct{}{}:
	default:
	}
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers--
}

// start returns the position of a new reader: the oldest frame and event kept.
func (s *Server) start() position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return position{frame: s.first, event: s.told}
}

// read returns the messages since a position, and a channel that closes when
// there are more. A slow reader skips frames that are no longer kept.
func (s *Server) read(at *position) (l letter, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.series != s.coder.version && s.coder.version > 0 {
		l.parts = append(l.parts, s.coder.series)
		at.series = s.coder.version
	}
	for at.frame = max(at.frame, s.first); at.frame < s.first+len(s.past); at.frame++ {
		l.parts = append(l.parts, s.past[at.frame-s.first])
	}
	for at.event = max(at.event, s.told); at.event < s.told+len(s.events); at.event++ {
		l.parts = append(l.parts, message("event", s.events[at.event-s.told]))
	}
	if at.drawn != s.drawn {
		l.parts = append(l.parts, s.figures)
		at.drawn = s.drawn
	}
	l.ended = s.ended
	return l, s.changed
}
