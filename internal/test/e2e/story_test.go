//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/story"
)

// TestStory plays what `make demo` plays.
func TestStory(t *testing.T) {
	for _, crontab := range []story.CronTab{story.HostPort(), story.CronSpec()} {
		t.Run(crontab.Group, func(t *testing.T) {
			t.Cleanup(func() { remove(t, crontab.CRD()) }) // others use the name
			play := &story.Play{Teller: teller, Fleet: fleet, CronTab: crontab, Count: 300}
			expect.NoError(t, play.Tell(t.Context()))
		})
	}
}
