// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/overview"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// redrawEvery is how often the screen is updated while nothing changes: it shows
// durations.
const redrawEvery = time.Second

// follow shows the policies, and again after each change of one of them.
func (o *statusOptions) follow(command *cobra.Command, api client.WithWatch, names []string, policies []*v1alpha1.ConversionPolicy) error {
	ctx := command.Context()
	if o.timeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, o.timeout)
		defer cancel()
		ctx = bounded
	}
	view := o.newView(command.OutOrStdout(), command.ErrOrStderr(), len(names) == 1)
	watching := newPolicyWatch(api, names, policies)
	var last []*overview.Overview
	see := func(policies []*v1alpha1.ConversionPolicy) (bool, error) {
		trouble := watching.trouble()
		if trouble == "" || last == nil {
			last = o.overviews(ctx, api, policies)
		}
		if err := view.show(last, trouble); err != nil {
			return false, err
		}
		return o.checkReady(last)
	}
	err := watching.run(ctx, see, view.ticks())
	view.stop()
	if o.output.isMachineReadable() && last != nil {
		err = errors.Join(o.write(command.OutOrStdout(), last, false), err)
	}
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return o.endedError(command.Context(), last)
}

// endedError returns why the command ended early: the user interrupted it, or the timeout expired.
func (o *statusOptions) endedError(user context.Context, last []*overview.Overview) error {
	if !o.untilReady {
		return nil
	}
	how := fmt.Sprintf("not Ready after %s", o.timeout)
	if user.Err() != nil {
		how = "interrupted"
	}
	for _, one := range last {
		if ready, _ := o.checkReady([]*overview.Overview{one}); !ready {
			return &exitError{exitFound, fmt.Errorf("%s: %s is at %s: %s", how, one.Name, one.Reason, one.Message)}
		}
	}
	return &exitError{exitFound, errors.New(how)}
}

// view shows the policies repeatedly.
type view interface {
	// show shows them, and why they may have changed since: the API server does not answer.
	show(all []*overview.Overview, trouble string) error
	// ticks returns a channel for updates that no event causes.
	ticks() <-chan time.Time
	stop()
}

func (o *statusOptions) newView(w, messages io.Writer, one bool) view {
	switch {
	case o.output.isMachineReadable():
		w = io.Discard // programs get the output at the end
	case isTerminal(w):
		return &screen{w: w, write: func(to io.Writer, all []*overview.Overview) error {
			return o.writeText(to, all, one, colorsOf(w))
		}, size: func() (int, int, error) { return term.GetSize(int(w.(*os.File).Fd())) }, ticker: time.NewTicker(redrawEvery)}
	}
	return &changeLog{outages: outages{w: messages}, w: w, now: o.now, printed: map[string]string{}}
}

// outages writes when an API server does not answer any more, and when it does again.
type outages struct {
	w  io.Writer
	is bool
}

func (o *outages) show(trouble string) error {
	if o.is == (trouble != "") {
		return nil
	}
	o.is = trouble != ""
	text := "The API server answers again."
	if o.is {
		text = unansweredText(trouble)
	}
	_, err := fmt.Fprintln(o.w, text)
	return err
}

func unansweredText(trouble string) string {
	return "The API server does not answer, so changes are not seen until it does: " + trouble
}

// screen draws over its previous content.
type screen struct {
	w     io.Writer
	write func(io.Writer, []*overview.Overview) error
	// size returns the size of the terminal, in characters.
	size   func() (width, height int, err error)
	ticker *time.Ticker
	drawn  bool
}

// The escape sequences that go to the first line, clear the screen, and clear
// the rest of the line and everything below the cursor.
const (
	toTop      = "\x1b[H"
	clearAll   = "\x1b[2J"
	clearRight = "\x1b[K"
	clearBelow = "\x1b[J"
)

func (s *screen) show(all []*overview.Overview, trouble string) error {
	var text bytes.Buffer
	if trouble != "" {
		fmt.Fprintln(&text, unansweredText(trouble))
	}
	if err := s.write(&text, all); err != nil {
		return err
	}
	start := toTop
	if !s.drawn {
		start, s.drawn = clearAll+toTop, true
	}
	lines := text.String()
	// A terminal that does not know its size says 0.
	if width, height, err := s.size(); err == nil && width > 0 && height > 0 {
		lines = terminal.Fit(lines, width, height)
	}
	_, err := io.WriteString(s.w, start+strings.ReplaceAll(lines, "\n", clearRight+"\n")+clearBelow)
	return err
}

func (s *screen) ticks() <-chan time.Time { return s.ticker.C }
func (s *screen) stop()                   { s.ticker.Stop() }

// changeLog writes a line for each change.
type changeLog struct {
	outages
	w       io.Writer
	now     func() time.Time
	printed map[string]string
}

func (l *changeLog) show(all []*overview.Overview, trouble string) error {
	if err := l.outages.show(trouble); err != nil {
		return err
	}
	for _, one := range all {
		line := one.Line()
		if l.printed[one.Name] == line {
			continue
		}
		l.printed[one.Name] = line
		if _, err := fmt.Fprintln(l.w, l.now().UTC().Format(time.RFC3339), line); err != nil {
			return err
		}
	}
	return nil
}

func (*changeLog) ticks() <-chan time.Time { return nil }
func (*changeLog) stop()                   {}
