// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/rights"
)

// rightsGranted: an administrator grants each right when a condition asks for it.
func rightsGranted(w *world) {
	w.tellsRuns = true
	w.observed.Granted = &observed.Granted{}
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredOld)
	w.converge()
	w.say("The administrator runs the commands.")
	w.observed.Granted.Read = true
	w.converge()
	w.say("The trigger of a migration is pulled, for which nothing is granted.")
	w.applyCRD(bothStoredNew)
	w.observed.Policy.Spec.Migration.Trigger = "first"
	w.converge()
	w.say("The administrator runs these commands too.")
	w.observed.Granted.Migrate = true
	w.converge()
	w.say("What was granted is taken back while it runs: it is for the run to say so.")
	w.observed.Granted.Migrate = false
	w.converge()
	w.record(whole())
	w.converge()
}

func TestGrantsHaveCommands(t *testing.T) {
	state := observed.Cluster{Policy: &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crontabs}},
		CRD: &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "crontabs"}}}}
	state.Policy.Spec.Migration.Fallback = []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackStatus}
	migrate, read, clearing := rights.Of(state)
	name := names.Child(crontabs)
	bind := func(as string) string {
		return "; kubectl create clusterrolebinding " + name + as + " --clusterrole=" + name + as + " --serviceaccount=system:" + name + as
	}
	want := []string{
		"kubectl create clusterrole " + name + "-migrate --verb=list,patch --resource=crontabs.example.com,crontabs.example.com/status" + bind("-migrate"),
		"kubectl create clusterrole " + name + "-read --verb=get,list --resource=crontabs.example.com" + bind("-read"),
		"kubectl create clusterrole " + name + "-clear --verb=list,patch --resource=crontabs.example.com" + bind("-clear"),
	}
	if diff := cmp.Diff(want, []string{migrate.Commands("system"), read.Commands("system"), clearing.Commands("system")}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
