// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const server = "crontabs-example-com-0a1b2c3d.conversion-system.svc"

const (
	tenYears    = 10 * 365 * 24 * time.Hour
	threeMonths = 90 * 24 * time.Hour
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newAuthority(t *testing.T) KeyPair {
	t.Helper()
	authority, err := NewAuthority("conversion-operator "+strings.Repeat("a", 80), now, tenYears)
	expect.NoError(t, err)
	return authority
}

func newLeaf(t *testing.T, authority KeyPair) KeyPair {
	t.Helper()
	leaf, err := IssueLeaf(authority, server, now, threeMonths)
	expect.NoError(t, err)
	return leaf
}

func TestCheckAuthority(t *testing.T) {
	authority := newAuthority(t)
	cases := map[string]struct {
		pair    KeyPair
		at      time.Time
		problem Problem
		want    string
	}{
		"valid":            {authority, now, 0, ""},
		"clock behind":     {authority, now.Add(-backdate / 2), 0, ""},
		"not yet valid":    {authority, now.Add(-2 * backdate), NotYetValid, "is not valid before"},
		"expired":          {authority, now.Add(tenYears + time.Second), Expired, "expired at"},
		"a serving one":    {newLeaf(t, authority), now, NotAnAuthority, "not a certificate authority"},
		"foreign key":      {KeyPair{authority.Certificate, newAuthority(t).Key}, now, KeyMismatch, "does not belong"},
		"no certificate":   {KeyPair{nil, authority.Key}, now, NotAKeyPair, "no PEM block of type CERTIFICATE"},
		"no key":           {KeyPair{authority.Certificate, nil}, now, NotAKeyPair, "no PEM block of type EC PRIVATE KEY"},
		"two certificates": {KeyPair{join(authority.Certificate, newAuthority(t).Certificate), authority.Key}, now, NotAKeyPair, "more than one"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { wantError(t, CheckAuthority(c.pair, c.at), c.problem, c.want) })
	}
}

func TestCheckLeaf(t *testing.T) {
	authority := newAuthority(t)
	leaf := newLeaf(t, authority)
	key, err := parseKey(authority.Key)
	expect.NoError(t, err)
	template, err := newTemplate(server, now, threeMonths)
	expect.NoError(t, err)
	template.DNSNames, template.ExtKeyUsage = []string{server}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	ofClient, err := sign(template, bundle(t, authority)[0], key)
	expect.NoError(t, err)
	cases := map[string]struct {
		leaf    KeyPair
		trusted Bundle
		name    string
		at      time.Time
		problem Problem
		want    string
	}{
		"valid":              {leaf, bundle(t, authority), server, now, 0, ""},
		"one of several":     {leaf, bundle(t, newAuthority(t), authority), server, now, 0, ""},
		"clock behind":       {leaf, bundle(t, authority), server, now.Add(-backdate / 2), 0, ""},
		"not yet valid":      {leaf, bundle(t, authority), server, now.Add(-2 * backdate), NotYetValid, "is not valid before"},
		"expired":            {leaf, bundle(t, authority), server, now.Add(threeMonths + time.Second), Expired, "expired at"},
		"other authority":    {leaf, bundle(t, newAuthority(t)), server, now, CAMismatch, "unknown authority"},
		"for clients":        {ofClient, bundle(t, authority), server, now, CAMismatch, "incompatible key usage"},
		"no authority":       {leaf, nil, server, now, CAMismatch, "unknown authority"},
		"other name":         {leaf, bundle(t, authority), "other.conversion-system.svc", now, WrongName, "not other.conversion-system.svc"},
		"foreign key":        {KeyPair{leaf.Certificate, authority.Key}, bundle(t, authority), server, now, KeyMismatch, "does not belong"},
		"no key":             {KeyPair{leaf.Certificate, nil}, bundle(t, authority), server, now, NotAKeyPair, "must both be there"},
		"a key that is none": {KeyPair{leaf.Certificate, []byte("x")}, bundle(t, authority), server, now, NotAKeyPair, "not a private key"},
		"tampered":           {KeyPair{leaf.Certificate[10:], leaf.Key}, bundle(t, authority), server, now, NotAKeyPair, "no PEM block"},
		"the key with it":    {KeyPair{join(leaf.Certificate, leaf.Key), leaf.Key}, bundle(t, authority), server, now, NotAKeyPair, "only certificates belong"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { wantError(t, CheckLeaf(c.leaf, c.trusted, c.name, c.at), c.problem, c.want) })
	}
}

func TestBundle(t *testing.T) {
	a, b := newAuthority(t), newAuthority(t)
	both := bundle(t, a, b)
	if got := both.With(bundle(t, a)); len(got) != 2 || !bytes.Equal(got.Encode(), join(a.Certificate, b.Certificate)) {
		t.Errorf("a certificate that is there already changes the bundle: %d certificates", len(got))
	}
	if !both.Same(bundle(t, b, a)) || both.Same(bundle(t, a)) || bundle(t, a).Contains(both) {
		t.Error("bundles are compared by what is in them, whatever the order")
	}
	expired, err := NewAuthority("old", now.Add(-tenYears), time.Hour)
	expect.NoError(t, err)
	if got := both.With(bundle(t, expired)).Unexpired(now); !got.Same(both) {
		t.Errorf("%d certificates have not expired, want 2", len(got))
	}
	expect.Equal(t, "the first expires at", now.Add(time.Hour-tenYears), both.With(bundle(t, expired)).NotAfter())
}

func bundle(t *testing.T, authorities ...KeyPair) Bundle {
	t.Helper()
	var text []byte
	for _, authority := range authorities {
		text = join(text, authority.Certificate)
	}
	parsed, err := ParseBundle(text)
	expect.NoError(t, err)
	return parsed
}

func join(texts ...[]byte) []byte { return bytes.Join(texts, nil) }

func TestLeafNeverOutlivesItsAuthority(t *testing.T) {
	authority := newAuthority(t)
	leaf, err := IssueLeaf(authority, server, now.Add(tenYears-time.Hour), threeMonths)
	expect.NoError(t, err)
	certificate, err := ParseCertificate(leaf.Certificate)
	expect.NoError(t, err)
	expect.Equal(t, "the leaf is valid until the authority's end", now.Add(tenYears), certificate.NotAfter)
	expect.Equal(t, "the leaf is for", []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, certificate.ExtKeyUsage)
	expect.Equal(t, "the authority signs no other", true, bundle(t, authority)[0].MaxPathLenZero)
}

func TestRenewalTime(t *testing.T) {
	certificate, err := ParseCertificate(newLeaf(t, newAuthority(t)).Certificate)
	expect.NoError(t, err)
	const day = 24 * time.Hour
	cases := map[string]struct {
		lifetime, before time.Duration
		want             time.Time
	}{
		// Two thirds of 90 days and the 10 minutes that the leaf is backdated.
		"two thirds of its life":     {threeMonths, 0, now.Add(-backdate).Add((threeMonths + backdate) * 2 / 3)},
		"some time before its end":   {threeMonths, 10 * day, now.Add(80 * day)},
		"a shorter life is wanted":   {30 * day, 0, now.Add(-backdate).Add((30*day + backdate) * 2 / 3)},
		"a longer life is wanted":    {900 * day, 0, now.Add(-backdate).Add((threeMonths + backdate) * 2 / 3)},
		"shorter, and before an end": {30 * day, day, now.Add(29 * day)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "renewal is due at", c.want, RenewalTime(certificate, c.lifetime, c.before))
		})
	}
}

func TestUrgent(t *testing.T) {
	certificate, err := ParseCertificate(newLeaf(t, newAuthority(t)).Certificate)
	expect.NoError(t, err)
	for left, want := range map[time.Duration]bool{threeMonths: false, threeMonths / 3: false, threeMonths / 7: true, -time.Hour: true} {
		expect.Equal(t, "urgent when "+left.String()+" is left", want, Urgent(certificate, now.Add(threeMonths-left)))
	}
}

func wantError(t *testing.T, err error, problem Problem, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got the error %q, want none", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got the error %v, want one with %q", err, want)
	case want != "" && ProblemOf(err) != problem:
		t.Errorf("the problem is %d, want %d: %v", ProblemOf(err), problem, err)
	}
}

func TestLeafForAnAddress(t *testing.T) {
	for _, address := range []string{"192.0.2.1", "2001:db8::1"} {
		authority := newAuthority(t)
		leaf, err := IssueLeaf(authority, address, now, threeMonths)
		expect.NoError(t, err)
		trusted, err := ParseBundle(authority.Certificate)
		expect.NoError(t, err)
		wantError(t, CheckLeaf(leaf, trusted, address, now), 0, "")
		wantError(t, CheckLeaf(leaf, trusted, "192.0.2.99", now), WrongName, "not 192.0.2.99")
	}
}
