// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"
)

// TestMaximumDepthOfFiles: an object with the maximum depth of API servers can be explained from a
// file. A deeper one is refused when the file is read.
func TestMaximumDepthOfFiles(t *testing.T) {
	const levels = 10_000
	explain := func(levels int) error {
		inner := levels - 1 // the object itself is the first
		object := "apiVersion: example.com/v1beta1\nkind: CronTab\nx: " + strings.Repeat("[", inner) + strings.Repeat("]", inner) + "\n"
		_, _, err := runWith(object, "explain", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml"), "--to=v1", "-f", "-")
		return err
	}
	if err := explain(levels); err != nil {
		t.Errorf("%d levels: %v", levels, err)
	}
	const want = "stdin, document 1: line 3: nested deeper than 10000 levels of objects and lists, which is the maximum of API servers"
	if err := explain(levels + 1); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%d levels: %v, want %s", levels+1, err, want)
	}
}
