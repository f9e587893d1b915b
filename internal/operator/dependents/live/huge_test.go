// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/huge"
)

// TestHugeObjects: a search of all objects needs memory for few of them.
func TestHugeObjects(t *testing.T) {
	server := huge.NewServer(t, nil)
	s, _ := newSearch(t)
	s.QPS, s.PageSize, s.Also = 1000, 500, []string{"secrets"}
	expect.NoError(t, s.connect(server.Config))
	expect.NoError(t, s.scan(t.Context(), []resource{secrets}))
	s.configuration(t.Context(), []resource{secrets})
	expect.Equal(t, "objects", huge.Objects, int(s.report.Cost.Objects))
	expect.Equal(t, "not checked", 0, len(s.report.NotChecked))
	server.WantFlat(t)
}
