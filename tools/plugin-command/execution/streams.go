// Package execution holds what running a command means, here and on another host alike.
package execution

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"

	p "github.com/pulumi/pulumi-go-provider"

	"berth/tools/plugin-command/discreet"
)

// Streams captures a command's output and shows it, line by line, as the resource's status.
type Streams struct {
	Stdout, Stderr io.Writer

	stdout, stderr bytes.Buffer
	shown          *lines
}

// NewStreams takes the `logging` input: none, stdout, stderr or stdoutAndStderr; unset shows both.
func NewStreams(ctx context.Context, logging string) *Streams {
	mask := discreet.Of(ctx)
	s := &Streams{shown: &lines{show: func(line string) {
		p.GetLogger(ctx).InfoStatus(mask.Apply(line))
	}}}
	s.Stdout, s.Stderr = &s.stdout, &s.stderr
	if logging == "" || logging == "stdout" || logging == "stdoutAndStderr" {
		s.Stdout = io.MultiWriter(s.shown, &s.stdout)
	}
	if logging == "" || logging == "stderr" || logging == "stdoutAndStderr" {
		s.Stderr = io.MultiWriter(s.shown, &s.stderr)
	}
	return s
}

// Outputs are what the resource keeps: without the last line's end, as a shell would give it.
func (s *Streams) Outputs() (stdout, stderr string) {
	s.shown.end()
	return strings.TrimSuffix(s.stdout.String(), "\n"), strings.TrimSuffix(s.stderr.String(), "\n")
}

// lines is written to by both streams at once.
type lines struct {
	mu      sync.Mutex
	pending []byte
	show    func(string)
}

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, data...)
	for {
		end := bytes.IndexByte(l.pending, '\n')
		if end < 0 {
			return len(data), nil
		}
		l.show(string(l.pending[:end]))
		l.pending = l.pending[end+1:]
	}
}

func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) > 0 {
		l.show(string(l.pending))
		l.pending = nil
	}
}
