// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestReads(t *testing.T) {
	read := func(reads ...Read) func(*Observed) {
		return func(o *Observed) { o.ClientConfig().CABundle, o.Reads = authority(t, 365), reads }
	}
	run(t, map[string]check{
		"not tried":   {crd: converts, observe: read()},
		"all is well": {crd: converts, observe: read(Read{Version: "v1", Object: "n/o"}, Read{Version: "v2", Object: "n/o"})},
		"no object at all": {crd: converts, observe: func(o *Observed) { read()(o); o.Reads = []Read{} }, want: []string{
			"Note Certain ConversionUnproven -: there is no object of this kind, so the audit converted nothing"}},
		"no object, one version": {crd: strings.Replace(converts, ", v2 served: {b: string}", "", 1), observe: func(o *Observed) { read()(o); o.Reads = []Read{} }},
		"the conversion fails": {crd: converts, observe: read(Read{Version: "v2", Object: "n/o", Failure: "conversion webhook for it failed", Converting: true}), want: []string{
			"Error Certain ConversionFails v2: n/o cannot be read at v2: conversion webhook for it failed"}},
		"not trusted": {crd: converts, observe: read(Read{Version: "v2", Object: "n/o", Failure: "x509: unknown", Converting: true, Untrusted: true}), want: []string{
			"Error Certain CABundleForeign v2: n/o cannot be read at v2, because the API server does not trust the webhook: x509: unknown"}},
		"it cannot be decoded": {crd: converts, observe: read(Read{Version: "v1", Object: "n/o", Failure: "invalid group/version"}), want: []string{
			"Error Certain ReadFails v1: n/o cannot be read at v1: invalid group/version"}},
	})
}

func TestCures(t *testing.T) {
	for name, test := range map[string]struct {
		read Read
		want string
	}{
		"a hint": {Read{Hint: "open the firewall"}, "open the firewall; the object is intact: do not delete it as corrupt"},
		"none":   {Read{}, "read the webhook's log; the object is intact: do not delete it as corrupt"},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "cure", test.want, test.read.cure())
		})
	}
}
