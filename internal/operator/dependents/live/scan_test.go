// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestScanMissesNothing: a kind that is deleted during a search names nothing; what else cannot be listed is reported.
func TestScanMissesNothing(t *testing.T) {
	for what, c := range map[string]struct {
		err  error
		want int
	}{
		"a kind that is gone":        {apierrors.NewNotFound(secrets.GroupResource(), ""), 0},
		"a kind that is not allowed": {apierrors.NewForbidden(secrets.GroupResource(), "", errors.New("not you")), 1},
	} {
		s, client := newSearch(t)
		client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
		expect.NoError(t, s.scan(t.Context(), []resource{secrets}))
		expect.Equal(t, "reported of "+what, c.want, len(s.report.NotChecked))
	}
}
