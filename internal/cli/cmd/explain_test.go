// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
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
	expect.NoError(t, explain(levels))
	const want = "stdin, document 1: line 3: nested deeper than 10000 levels of objects and lists, which is the maximum of API servers"
	expect.Contains(t, "the error about one more", fmt.Sprint(explain(levels+1)), want)
}
