// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownedByController is an object that a controller owns.
func ownedByController(apiVersion, kind, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: new(true)}}}
}

// TestWriterOf: the writer of a CustomResourceDefinition is recognized from what the tools write to it.
func TestWriterOf(t *testing.T) {
	xrd := ownedByController("apiextensions.crossplane.io/v1", "CompositeResourceDefinition", "databases.example.com")
	xrd.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"} // Crossplane copies the labels of the XRD
	xrd.Annotations = map[string]string{"meta.helm.sh/release-name": "platform"}
	cases := map[string]struct {
		metadata metav1.ObjectMeta
		want     *Writer
	}{
		"nothing":       {metav1.ObjectMeta{}, nil},
		"another owner": {ownedByController("apps/v1", "Deployment", "a"), nil},
		"an owner that is no controller": {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apiextensions.crossplane.io/v1", Kind: "CompositeResourceDefinition", Name: "a"}}}, nil},
		"an XRD, which Helm installed": {xrd, &Writer{Crossplane, "compositeresourcedefinitions.apiextensions.crossplane.io/databases.example.com",
			"compositeresourcedefinitions.apiextensions.crossplane.io/databases.example.com"}},
		"a package of Crossplane": {ownedByController("pkg.crossplane.io/v1", "ProviderRevision", "aws-1"),
			&Writer{Crossplane, "providerrevisions.pkg.crossplane.io/aws-1", "the package of providerrevisions.pkg.crossplane.io/aws-1"}},
		"kro": {metav1.ObjectMeta{Labels: map[string]string{"kro.run/owned": "true", "kro.run/resource-graph-definition-name": "app"}},
			&Writer{Kro, "resourcegraphdefinitions.kro.run/app", "resourcegraphdefinitions.kro.run/app"}},
		"kro since 0.9": {metav1.ObjectMeta{Labels: map[string]string{"internal.kro.run/resource-graph-definition-name": "app"}},
			&Writer{Kro, "resourcegraphdefinitions.kro.run/app", "resourcegraphdefinitions.kro.run/app"}},
		"kro without a name": {metav1.ObjectMeta{Labels: map[string]string{"kro.run/owned": "true"}}, &Writer{Kro, "", "its ResourceGraphDefinition"}},
		"OLM, with the annotation of an InstallPlan": {metav1.ObjectMeta{Labels: map[string]string{"olm.managed": "true"},
			Annotations: map[string]string{"operatorframework.io/installed-alongside-1": "db/db.v1.2.0"}},
			&Writer{OLM, "clusterserviceversions.operators.coreos.com/db.v1.2.0", "the bundle of clusterserviceversions.operators.coreos.com/db.v1.2.0 in namespace db"}},
		"OLM, with the label of an Operator": {metav1.ObjectMeta{Labels: map[string]string{"operators.coreos.com/db.db": ""}},
			&Writer{OLM, "operators.operators.coreos.com/db.db", "the bundle of operators.operators.coreos.com/db.db"}},
		"OLM, without a name": {metav1.ObjectMeta{Labels: map[string]string{"olm.managed": "true"}}, &Writer{OLM, "", "the bundle that has it"}},
		"OLM 1": {metav1.ObjectMeta{Labels: map[string]string{"olm.operatorframework.io/owner-kind": "ClusterExtension", "olm.operatorframework.io/owner-name": "db"}},
			&Writer{OLM, "clusterextensions.olm.operatorframework.io/db", "the bundle of clusterextensions.olm.operatorframework.io/db"}},
		"Helm": {metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"},
			Annotations: map[string]string{"meta.helm.sh/release-name": "db", "meta.helm.sh/release-namespace": "prod"}},
			&Writer{Helm, "prod/db", "the chart of the Helm release prod/db"}},
		"a manifest that names Helm only": {metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := WriterOf(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: c.metadata})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("want (-), got (+): %s", diff)
			}
		})
	}
}

// TestConverts: Crossplane has copied a conversion if it is the same with the defaults of API servers.
func TestConverts(t *testing.T) {
	xrd, crd := &Composite{}, &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	if !xrd.Converts(crd) {
		t.Error("no conversion is the strategy None")
	}
	xrd.Spec.Conversion, crd.Spec.Conversion = viaService(), viaService()
	xrd.Spec.Conversion.Webhook.ClientConfig.Service.Port = nil
	if !xrd.Converts(crd) {
		t.Error("443 is the default of the port")
	}
	crd.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("y")
	if xrd.Converts(crd) {
		t.Error("caBundle differs")
	}
}
