// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// TestStoredNames: a name has an owner and a hash.
func TestStoredNames(t *testing.T) {
	for name, want := range map[string]struct {
		owner, hash string
		is          bool
	}{
		conversion.StoredName("crontabs-example-com-d884ab8c", "0123456789abcdef"): {"crontabs-example-com-d884ab8c", "0123456789abcdef", true},
		"0123456789abcdef.json.gz": {},
		"notes.txt":                {},
		"..data":                   {},
	} {
		hash, is := conversion.StoredHash(name)
		owner, isToo := conversion.StoredOwner(name)
		if owner != want.owner || hash != want.hash || is != want.is || isToo != want.is {
			t.Errorf("%s: owner %q, hash %q, %t and %t", name, owner, hash, is, isToo)
		}
	}
}
