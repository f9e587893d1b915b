// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/terminal"
)

// Line says in one line, without the time, how far the operator is: for logs,
// which have a line for each thing that happened.
func (o *Overview) Line() string {
	line := fmt.Sprintf("%s: Ready=%s %s", o.Name, o.Ready, o.Reason)
	if run := o.Migration; run != nil && o.MigrationEvidence == nil && o.Reason != notSeen {
		state := string(run.State)
		if run.Step != "" {
			state = string(run.Step)
		}
		line += fmt.Sprintf(", %s %d of %d (%d%%), %d failed", state, done(run), max(run.Total, done(run)), share(run), run.Failed)
		if speed := speed(run, o.now); speed != "" {
			line += ", " + speed
		}
	}
	if o.Message != "" {
		line += ": " + terminal.OneLine(o.Message)
	}
	return line
}
