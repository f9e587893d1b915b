// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"slices"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
)

// The authority of a fleet is replaced when the CustomResourceDefinitions of all its policies trust
// the next one. Some policies do not write caBundle: they are paused, or were orphaned. As long
// as the previous authority can, it renews the serving certificate, so that no conversion fails.
// Shortly before its last certificate expires, pods serve one of the next authority: the kinds that
// do not trust it would fail soon in any case, and the others must not fail with them.

const (
	// patience is how long a rotation waits for CustomResourceDefinitions before it counts as held
	// up. Writing thousands of them takes minutes.
	patience = 15 * time.Minute
	// handover is how long before the last certificate of the previous authority expires pods serve
	// the next one. They load it within minutes.
	handover = time.Hour
)

// HeldUp is the state in which the rotation waits for CustomResourceDefinitions, and when it counts
// as held up by those whose caBundle does not change. The state is empty if it waits for none.
func (c *Certificates) HeldUp() (v1alpha1.RotationState, time.Time) {
	state, before := c.rotationState(), c.Before
	waits := state == v1alpha1.RotationAddingCA || state == v1alpha1.RotationRemovingCA
	if !waits || before == nil || before.Rotation != state || before.RotationTime == nil {
		return "", time.Time{}
	}
	return state, before.RotationTime.Add(patience)
}

// HoldsUp reports that the rotation waits for a change of this caBundle; nil is one that is unknown.
func (c *Certificates) HoldsUp(text []byte) bool {
	counts := slices.ContainsFunc(c.Trusted, func(counted []byte) bool {
		return bytes.Equal(counted, text) && (counted == nil) == (text == nil)
	})
	switch c.rotationState() {
	case v1alpha1.RotationAddingCA:
		return counts && !c.accepted(text)
	case v1alpha1.RotationRemovingCA:
		return counts && !bytes.Equal(text, c.CABundle())
	}
	return false
}

// accepted reports that API servers which trust this caBundle accept the offered certificate.
func (c *Certificates) accepted(text []byte) bool {
	bundle, err := pki.ParseBundle(text)
	return err == nil && c.offeredTrusted(bundle)
}

// cannotWait reports that the rotation has been held up until shortly before the serving certificate
// expires, and that the previous authority cannot renew it for longer.
func (c *Certificates) cannotWait() bool {
	leaf, err := pki.ParseCertificate(c.serving.pair.Certificate)
	state, at := c.HeldUp()
	if err != nil || state == "" || c.Now.Before(at) || !slices.ContainsFunc(c.Trusted, c.accepted) {
		return false
	}
	if self, ok := c.source.(selfManaged); ok {
		if older := self.older(); older != nil && leaf.NotAfter.Before(older.roots.NotAfter()) {
			return false
		}
	}
	return c.work.Due(leaf.NotAfter.Add(-handover).Sub(c.Now))
}
