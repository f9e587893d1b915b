// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestSaysMore compares a count with one that was made at second 10.
func TestSaysMore(t *testing.T) {
	count := func(complete bool, second int64, fields ...string) *v1alpha1.PreservedDataStatus {
		of := v1alpha1.PreservedVersion{Version: "v1beta1"}
		for _, field := range fields {
			of.Fields = append(of.Fields, v1alpha1.PreservedField{Path: field})
		}
		return &v1alpha1.PreservedDataStatus{Complete: complete, Time: metav1.NewTime(time.Unix(second, 0)), Versions: []v1alpha1.PreservedVersion{of}}
	}
	all, some := true, false
	for what, c := range map[string]struct {
		counted, known *v1alpha1.PreservedDataStatus
		want           bool
	}{
		"all, later":                            {count(all, 11), count(all, 10, ".note"), true},
		"all, earlier":                          {count(all, 9, ".note"), count(all, 10), false},
		"some, in the same second":              {count(some, 10), count(some, 10, ".note"), true},
		"all, later than some":                  {count(all, 11), count(some, 10, ".note"), true},
		"all, earlier than some, and all of it": {count(all, 9, ".note", ".mode"), count(some, 10, ".note"), true},
		"all, earlier than some with another":   {count(all, 9, ".note"), count(some, 10, ".note", ".mode"), false},
		"some, later than all, with another":    {count(some, 11, ".mode"), count(all, 10, ".note"), true},
		"some, later than all, and no other":    {count(some, 11, ".note"), count(all, 10, ".note", ".mode"), false},
		"some, earlier than all, with another":  {count(some, 9, ".mode"), count(all, 10, ".note"), false},
	} {
		expect.Equal(t, what, c.want, saysMore(c.counted, c.known))
	}
}
