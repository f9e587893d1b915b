// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
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
		expect.Equal(t, name, []any{want.owner, want.hash, want.is, want.is}, []any{owner, hash, is, isToo})
	}
}
