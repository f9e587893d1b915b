// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"strings"
	"testing"
	"time"
)

const server = "crontabs-example-com-0a1b2c3d.conversion-system.svc"

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newAuthority(t *testing.T) KeyPair {
	t.Helper()
	authority, err := NewAuthority("conversion-operator "+strings.Repeat("a", 80), now)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func newLeaf(t *testing.T, authority KeyPair) KeyPair {
	t.Helper()
	leaf, err := IssueLeaf(authority, server, now)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func TestCheckAuthority(t *testing.T) {
	authority := newAuthority(t)
	cases := map[string]struct {
		pair KeyPair
		at   time.Time
		want string
	}{
		"valid":           {authority, now, ""},
		"clock behind":    {authority, now.Add(-backdate / 2), ""},
		"not yet valid":   {authority, now.Add(-2 * backdate), "is not valid before"},
		"expired":         {authority, now.Add(AuthorityLifetime), "expired at"},
		"a leaf":          {newLeaf(t, authority), now, "not a certificate authority"},
		"foreign key":     {KeyPair{authority.Certificate, newAuthority(t).Key}, now, "does not belong"},
		"no certificate":  {KeyPair{nil, authority.Key}, now, "no PEM block of type CERTIFICATE"},
		"no key":          {KeyPair{authority.Certificate, nil}, now, "no PEM block of type EC PRIVATE KEY"},
		"two certificate": {KeyPair{append(authority.Certificate, authority.Certificate...), authority.Key}, now, "more than one"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { wantError(t, CheckAuthority(c.pair, c.at), c.want) })
	}
}

func TestCheckLeaf(t *testing.T) {
	authority := newAuthority(t)
	leaf := newLeaf(t, authority)
	cases := map[string]struct {
		leaf      KeyPair
		authority []byte
		name      string
		at        time.Time
		want      string
	}{
		"valid":             {leaf, authority.Certificate, server, now, ""},
		"expired":           {leaf, authority.Certificate, server, now.Add(LeafLifetime + time.Second), "expired"},
		"other authority":   {leaf, newAuthority(t).Certificate, server, now, "unknown authority"},
		"other name":        {leaf, authority.Certificate, "other.conversion-system.svc", now, "not other.conversion-system.svc"},
		"foreign key":       {KeyPair{leaf.Certificate, authority.Key}, authority.Certificate, server, now, "does not belong"},
		"tampered":          {KeyPair{leaf.Certificate[10:], leaf.Key}, authority.Certificate, server, now, "no PEM block"},
		"no such authority": {leaf, nil, server, now, "certificate authority"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { wantError(t, CheckLeaf(c.leaf, c.authority, c.name, c.at), c.want) })
	}
}

func TestLeafNeverOutlivesItsAuthority(t *testing.T) {
	authority := newAuthority(t)
	leaf, err := IssueLeaf(authority, server, now.Add(AuthorityLifetime-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := ParseCertificate(leaf.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	if want := now.Add(AuthorityLifetime); !certificate.NotAfter.Equal(want) {
		t.Errorf("the leaf is valid until %s, want the authority's end %s", certificate.NotAfter, want)
	}
}

func TestRenewalTime(t *testing.T) {
	certificate, err := ParseCertificate(newLeaf(t, newAuthority(t)).Certificate)
	if err != nil {
		t.Fatal(err)
	}
	// Two thirds of 90 days and the 10 minutes that the leaf is backdated.
	want := now.Add(-backdate).Add((LeafLifetime + backdate) * 2 / 3)
	if got := RenewalTime(certificate); !got.Equal(want) {
		t.Errorf("renewal is due at %s, want %s", got, want)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got the error %q, want none", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got the error %v, want one with %q", err, want)
	}
}
