// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
)

// TestSecrets: each thing that may be wrong with them is a condition with a cure.
func TestSecrets(t *testing.T) {
	other := func(w *world) *world {
		other := newWorld(w.t)
		other.observed.Authority = other.secret(pki.NewAuthority(crontabs, w.observed.Now))
		return other
	}
	cases := map[string]struct {
		change func(*world)
		reason string
		cure   string
	}{
		"the authority is gone":             {func(w *world) { w.observed.Authority = nil }, v1alpha1.ReasonAuthorityLost, "Restore the Secret from a backup"},
		"another authority":                 {func(w *world) { w.observed.Authority = other(w).observed.Authority }, v1alpha1.ReasonAuthorityMismatch, "Restore the Secret from a backup"},
		"a key of another":                  {func(w *world) { w.observed.Authority.Data["tls.key"] = other(w).observed.Authority.Data["tls.key"] }, v1alpha1.ReasonInvalidAuthority, "does not belong to the certificate. Restore"},
		"an authority without a key":        {func(w *world) { delete(w.observed.Authority.Data, "tls.key") }, v1alpha1.ReasonInvalidAuthority, "Restore the Secret from a backup; or delete it"},
		"an authority that has expired":     {func(w *world) { w.pass(pki.AuthorityLifetime + time.Hour) }, v1alpha1.ReasonInvalidAuthority, "expired at 2035"},
		"an operator whose clock went back": {func(w *world) { w.pass(-24 * time.Hour) }, v1alpha1.ReasonInvalidAuthority, "correct the clock"},
		"the certificate is gone":           {func(w *world) { w.observed.Certificate = nil }, v1alpha1.ReasonIssuing, ""},
		"a certificate that is none":        {func(w *world) { w.observed.Certificate.Data["tls.crt"] = []byte("x") }, v1alpha1.ReasonIssuing, ""},
		"a certificate that has expired":    {func(w *world) { w.pass(pki.LeafLifetime + time.Hour) }, v1alpha1.ReasonIssuing, ""},
		"issued by a clock that was ahead": {func(w *world) {
			w.observed.CRD.Spec.Conversion = nil
			w.observed.Policy.Status.ArmedCRD = ""
			w.observed.Authority.CreationTimestamp.Time = w.observed.Now.Add(-time.Hour)
		}, v1alpha1.ReasonClockSkew, "Correct the clock"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := armed(t)
			c.change(w)
			ready := apimeta.FindStatusCondition(w.plan().Status.Conditions, v1alpha1.CertificatesReadyCondition)
			if ready.Reason != c.reason || !strings.Contains(ready.Message, c.cure) {
				t.Errorf("CertificatesReady is %s %s: %s; want %s and %q", ready.Status, ready.Reason, ready.Message, c.reason, c.cure)
			}
		})
	}
}

// TestAReplacedAuthoritySignsNothing while API servers trust another.
func TestAReplacedAuthoritySignsNothing(t *testing.T) {
	w := armed(t)
	w.observed.Authority = w.secret(pki.NewAuthority(crontabs, w.observed.Now))
	if got := kinds(w.plan().Steps); got != nil {
		t.Errorf("steps are %v, want none", got)
	}
}

func lostSecrets(w *world) {
	w.say("Everything is armed.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredNew)
	w.settle()
	w.say("Somebody deletes the Secret of the certificate authority.")
	authority := w.observed.Authority
	w.observed.Authority = nil
	w.settle()
	w.say("It is restored from a backup.")
	w.observed.Authority = authority
	w.settle()
	w.say("Somebody deletes it together with that of the serving certificate.")
	w.observed.Authority, w.observed.Certificate = nil, nil
	w.settle()
}

func replacedAuthority(w *world) {
	w.say("Everything is armed.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredNew)
	w.settle()
	w.say("Somebody restores another certificate authority.")
	w.observed.Authority = w.secret(pki.NewAuthority(crontabs, w.observed.Now))
	w.settle()
	w.say("The serving certificate is deleted, as the condition says.")
	w.observed.Certificate = nil
	w.settle()
}
