// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestDelay(t *testing.T) {
	tests := map[string]struct {
		n        int
		err      error
		min, max time.Duration
	}{
		"first":               {n: 1, err: unreachable(), min: 250 * time.Millisecond, max: 300 * time.Millisecond},
		"doubles":             {n: 3, err: unreachable(), min: time.Second, max: 1200 * time.Millisecond},
		"ends":                {n: maxAttempts, err: unreachable(), min: 30 * time.Second, max: 36 * time.Second},
		"asks for more":       {n: 1, err: overloaded(7), min: 7 * time.Second, max: 7 * time.Second},
		"asks for less":       {n: 5, err: overloaded(1), min: 4 * time.Second, max: 4800 * time.Millisecond},
		"server timeout asks": {n: 1, err: apierrors.NewServerTimeout(testResource.GroupResource(), "patch", 3), min: 3 * time.Second, max: 3 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := delay(tt.n, tt.err); got < tt.min || got > tt.max {
				t.Errorf("delay is %s, want %s to %s", got, tt.min, tt.max)
			}
		})
	}
}
