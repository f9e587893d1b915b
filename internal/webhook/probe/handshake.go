// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"time"
)

// Handshake asks nothing of a converter but its certificate, and returns when that
// expires. The error is as that of Pod.
func Handshake(ctx context.Context, target OwnTarget) (notAfter time.Time, err error) {
	connection, err := dial(ctx, &Target{Address: target.Address, CABundle: target.CABundle, ServerName: target.ServerName})
	if err != nil {
		return time.Time{}, err
	}
	defer connection.close()
	return connection.notAfter, nil
}
