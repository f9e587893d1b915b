// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import "testing"

// TestLeafForAnAddress: what has no name is known by its IP address.
func TestLeafForAnAddress(t *testing.T) {
	for _, address := range []string{"192.0.2.1", "2001:db8::1"} {
		authority := newAuthority(t)
		leaf, err := IssueLeaf(authority, address, now, threeMonths)
		if err != nil {
			t.Fatal(err)
		}
		trusted, err := ParseBundle(authority.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, CheckLeaf(leaf, trusted, address, now), "", "")
		wantError(t, CheckLeaf(leaf, trusted, "192.0.2.99", now), WrongName, "not 192.0.2.99")
	}
}
