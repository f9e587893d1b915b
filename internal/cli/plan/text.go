// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/forecast"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer, colors terminal.Colors) error {
	out := &strings.Builder{}
	fmt.Fprintf(out, "%s, %s\n", colors.In(terminal.Bold, r.Policy), terminal.Count(int(r.Objects), "object"))
	for i, stage := range r.Stages {
		fmt.Fprintf(out, "\n%d. %s, %s\n", i+1, colors.In(terminal.Bold, cmp.Or(stage.Condition, "What you do")), after(stage.After.Duration))
		for _, line := range lines(stage.Actions) {
			out.WriteString("   " + line + "\n")
		}
	}
	r.writeEnd(out, colors)
	writeList(out, colors, "Objects that fail", r.Failing, func(failing forecast.Failing) string { return failing.Object + ": " + failing.Message })
	writeList(out, colors, "What has to be true outside", r.Needs, func(need Need) string { return string(need.Of) + ": " + need.Text })
	writeList(out, colors, "What this forecast assumes", r.Assumptions, func(text string) string { return text })
	_, err := io.WriteString(w, out.String())
	return err
}

func (r *Report) writeEnd(out *strings.Builder, colors terminal.Colors) {
	switch end := r.End; {
	case end.Gone:
		fmt.Fprintf(out, "\n%s %s.\n", colors.In(terminal.Green, "Deleted"), after(r.Takes.Duration))
	case end.Ready:
		but := ""
		if end.Reason == v1alpha1.ReasonBlocked {
			but = fmt.Sprintf(", but %s is %s", end.Condition, end.Reason)
		}
		fmt.Fprintf(out, "\n%s %s%s: %s\n", colors.In(terminal.Green, "Ready"), after(r.Takes.Duration), but, terminal.OneLine(end.Message))
	default:
		fmt.Fprintf(out, "\n%s %s: %s %s: %s\n", colors.In(terminal.Red, "Stops"), after(r.Takes.Duration), end.Condition, end.Reason, terminal.OneLine(end.Message))
		for i, advice := range r.Next {
			fmt.Fprintf(out, "  %s %s\n", map[bool]string{true: "First:", false: "Then: "}[i == 0], advice.Text)
			if advice.Command != "" {
				fmt.Fprintf(out, "         %s\n", advice.Command)
			}
		}
	}
}

func writeList[T any](out *strings.Builder, colors terminal.Colors, title string, list []T, text func(T) string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", colors.In(terminal.Bold, title))
	for _, one := range list {
		fmt.Fprintf(out, "  - %s\n", terminal.OneLine(text(one)))
	}
}

func after(d time.Duration) string {
	if d == 0 {
		return "at once"
	}
	return "after " + duration.HumanDuration(d)
}

// lines are the actions of a stage. Objects that the operator applies one after the other are in one line.
func lines(actions []forecast.Action) []string {
	var all []string
	for i, action := range actions {
		text := terminal.OneLine(action.Text)
		line := fmt.Sprintf("%s: %s", action.By, text)
		switch action.Kind {
		case forecast.Wait:
			line = fmt.Sprintf("waits %s: %s", duration.HumanDuration(action.Takes.Duration), text)
		case forecast.Warning:
			line = "warning: " + text
		case forecast.Check:
			line = fmt.Sprintf("%s, a check: %s", action.By, text)
		case forecast.Write:
			if action.Step == "Apply" && i > 0 && actions[i-1].Step == "Apply" {
				all[len(all)-1] += ", " + strings.TrimPrefix(text, "apply ")
				continue
			}
			if action.Takes.Duration > 0 {
				line += ", for " + duration.HumanDuration(action.Takes.Duration)
			}
		}
		all = append(all, line)
		if action.Undo != "" {
			all = append(all, "  undo? "+action.Undo)
		}
	}
	return all
}
