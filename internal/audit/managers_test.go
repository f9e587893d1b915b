// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import "testing"

func TestManagers(t *testing.T) {
	const crd = "versions: {v1beta1 served: {a: string}, v1 served storage: {a: string}, v2 served: {a: string}}\nstatus: {storedVersions: [v1]}\n"
	written := func(objects ...Object) func(*Observed) { return func(o *Observed) { o.Objects = objects } }
	by := func(name string, writers ...Writer) Object { return Object{Name: name, Writers: writers} }
	const old = "Note Certain ManagedFieldsOld v1beta1: in 2 of 3 objects that the audit read, metadata.managedFields has writes at v1beta1, by flux (Apply), kubectl (Update) (n/a, n/b): server-side apply of these objects fails once the version is removed"
	const gone = "Warning Certain ManagedFieldsOld v1alpha1: in 1 of 1 objects that the audit read, metadata.managedFields has writes at v1alpha1, by kubectl (Update) (n/a): the definition no longer has the version, so server-side apply of these objects fails"
	run(t, map[string]check{
		"no objects":             {crd: crd},
		"the storage version":    {crd: crd, observe: written(by("n/a", Writer{"v1", "kubectl (Update)"}))},
		"a newer version":        {crd: crd, observe: written(by("n/a", Writer{"v2", "kubectl (Update)"}))},
		"an old version":         {crd: crd, observe: written(by("n/b", Writer{"v1beta1", "kubectl (Update)"}), by("n/c"), by("n/a", Writer{"v1beta1", "kubectl (Update)"}, Writer{"v1beta1", "flux (Apply)"}, Writer{"v1", "x"})), want: []string{old}},
		"a version that is gone": {crd: crd, observe: written(by("n/a", Writer{"v1alpha1", "kubectl (Update)"})), want: []string{gone}},
	})
}
