// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import "testing"

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		options Options
		valid   bool
	}{
		{Options{Definitions: 10, Policies: 5, Singles: 5}, true},
		{Options{Definitions: 10, Policies: 6, Singles: 5}, false},
		{Options{Definitions: 10, Policies: 5, Singles: 2, Most: 11}, false},
		{Options{Definitions: 10, Policies: 0, Singles: 2}, false},
		{Options{Definitions: 10, Policies: 1, Singles: 0}, false},
	} {
		if err := test.options.validate(); (err == nil) != test.valid {
			t.Errorf("%+v: error %v, valid %t", test.options, err, test.valid)
		}
	}
}
