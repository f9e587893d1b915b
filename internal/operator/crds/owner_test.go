// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// allFields is the managedFields entry of a manager that applied a whole conversion.
const allFields = `{"f:spec":{"f:conversion":{"f:strategy":{},"f:webhook":{"f:clientConfig":{"f:caBundle":{},
	"f:service":{"f:name":{},"f:namespace":{},"f:path":{},"f:port":{}}},"f:conversionReviewVersions":{}}}}}`

const withoutBundle = `{"f:spec":{"f:conversion":{"f:strategy":{},"f:webhook":{"f:clientConfig":{
	"f:service":{"f:name":{},"f:namespace":{},"f:path":{},"f:port":{}}},"f:conversionReviewVersions":{}}}}}`

const onlyBundle = `{"f:spec":{"f:conversion":{"f:webhook":{"f:clientConfig":{"f:caBundle":{}}}}}}`

const onlyStrategy = `{"f:spec":{"f:conversion":{"f:strategy":{}}}}`

// author is the entry of the client that created the CustomResourceDefinition: the object
// spec.conversion, and no field in it.
const author = `{"f:spec":{"f:conversion":{".":{},"f:webhook":{".":{},"f:clientConfig":{}}},"f:group":{}}}`

func viaService() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				CABundle: []byte("x"),
				Service:  &apiextensionsv1.ServiceReference{Namespace: "a", Name: "b", Path: new("/c"), Port: new(int32(443))},
			},
		},
	}
}

func entry(manager, fields string, second int) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields),
		Time: &metav1.Time{Time: time.Unix(int64(second), 0)}}
}

func TestConversionOwners(t *testing.T) {
	without := viaService()
	without.Webhook.ClientConfig.CABundle = nil
	none := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	ofStatus := entry("theirs", allFields, 9)
	ofStatus.Subresource = "status"
	forged := entry("ours", allFields, 3)
	forged.Operation = metav1.ManagedFieldsOperationUpdate
	cases := map[string]struct {
		conversion *apiextensionsv1.CustomResourceConversion
		entries    []metav1.ManagedFieldsEntry
		ours       bool
		writer     string
	}{
		"ours":                    {viaService(), []metav1.ManagedFieldsEntry{entry("author", author, 1), entry("ours", allFields, 2)}, true, ""},
		"ours, and another's":     {viaService(), []metav1.ManagedFieldsEntry{entry("ours", allFields, 2), entry("theirs", onlyBundle, 3)}, true, "theirs"},
		"in two entries":          {viaService(), []metav1.ManagedFieldsEntry{entry("ours", withoutBundle, 2), entry("ours", onlyBundle, 3)}, true, ""},
		"dropped":                 {none, []metav1.ManagedFieldsEntry{entry("author", author, 5), entry("theirs", onlyStrategy, 3)}, false, "theirs"},
		"updated under our name":  {viaService(), []metav1.ManagedFieldsEntry{forged}, false, "ours"},
		"None, applied by us":     {none, []metav1.ManagedFieldsEntry{entry("ours", onlyStrategy, 3)}, true, ""},
		"caBundle changed":        {viaService(), []metav1.ManagedFieldsEntry{entry("ours", withoutBundle, 2), entry("theirs", onlyBundle, 3)}, false, "theirs"},
		"caBundle removed":        {without, []metav1.ManagedFieldsEntry{entry("ours", withoutBundle, 2)}, false, ""},
		"the latest of two":       {none, []metav1.ManagedFieldsEntry{entry("later", onlyStrategy, 4), entry("theirs", onlyBundle, 3)}, false, "later"},
		"only of the status":      {viaService(), []metav1.ManagedFieldsEntry{ofStatus}, false, ""},
		"no account":              {viaService(), nil, false, ""},
		"no account, no block":    {nil, nil, false, ""},
		"an account of no fields": {viaService(), []metav1.ManagedFieldsEntry{{Manager: "ours"}, entry("theirs", "?", 1)}, false, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.entries}}
			expect.Equal(t, "ours", c.ours, ConversionIsBy(crd, c.conversion, "ours"))
			expect.Equal(t, "the writer", c.writer, ConversionWriter(crd, c.conversion, "ours"))
		})
	}
}

func TestStoredVersionsWriter(t *testing.T) {
	const stored, conditions = `{"f:status":{"f:storedVersions":{}}}`, `{"f:status":{"f:conditions":{}}}`
	entry := func(manager, fields string, second int) metav1.ManagedFieldsEntry {
		one := entry(manager, fields, second)
		one.Subresource = "status"
		return one
	}
	cases := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"no entry":        {nil, ""},
		"others' fields":  {[]metav1.ManagedFieldsEntry{entry("kube-apiserver", conditions, 1), {Manager: "kubectl"}}, ""},
		"one":             {[]metav1.ManagedFieldsEntry{entry("kubectl", stored, 1), entry("kube-apiserver", conditions, 2)}, "kubectl"},
		"the last of two": {[]metav1.ManagedFieldsEntry{entry("helm", stored, 3), entry("kubectl", stored, 1)}, "helm"},
		"no account":      {[]metav1.ManagedFieldsEntry{entry("kubectl", "[", 1)}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.entries}}
			expect.Equal(t, "written by", c.want, StoredVersionsWriter(crd))
		})
	}
}

func TestByPriority(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	for _, name := range []string{"v1alpha1", "foo10", "v10", "v1", "v2beta1", "v1beta2", "v1beta1", "foo1", "v2"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: name})
	}
	var got []string
	for _, version := range ByPriority(crd) {
		got = append(got, version.Name)
	}
	want := []string{"v10", "v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v1alpha1", "foo1", "foo10"}
	expect.Equal(t, "order", want, got)
	if version, at := Version(crd, "v10"); version == nil || version.Name != "v10" || at != 2 {
		t.Errorf("v10 is %v at %d", version, at)
	}
	if version, at := Version(crd, "v3"); version != nil || at != -1 {
		t.Errorf("v3 is %v at %d", version, at)
	}
}

func TestVersionsWriter(t *testing.T) {
	const ours = "conversion-operator"
	entry := func(manager, subresource, fields string, second int) metav1.ManagedFieldsEntry {
		one := entry(manager, fields, second)
		one.Subresource = subresource
		return one
	}
	const list = `{"f:spec":{"f:versions":{}}}`
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		ours    bool
		writer  string
	}{
		"no entry":             {},
		"us":                   {[]metav1.ManagedFieldsEntry{entry(ours, "", list, 1)}, true, ""},
		"them":                 {[]metav1.ManagedFieldsEntry{entry("argocd", "", list, 1)}, false, "argocd"},
		"us and them":          {[]metav1.ManagedFieldsEntry{entry(ours, "", list, 2), entry("argocd", "", list, 1)}, true, "argocd"},
		"the latest of them":   {[]metav1.ManagedFieldsEntry{entry("argocd", "", list, 2), entry("helm", "", list, 1)}, false, "argocd"},
		"something else":       {[]metav1.ManagedFieldsEntry{entry(ours, "", `{"f:spec":{"f:conversion":{}}}`, 1)}, false, ""},
		"the status":           {[]metav1.ManagedFieldsEntry{entry("kube-apiserver", "status", list, 1)}, false, ""},
		"what cannot be read":  {[]metav1.ManagedFieldsEntry{entry("argocd", "", `{`, 1)}, false, ""},
		"without its own time": {[]metav1.ManagedFieldsEntry{{Manager: "argocd", FieldsV1: metav1.NewFieldsV1(list)}}, false, "argocd"},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{ManagedFields: test.entries}}
			expect.Equal(t, "by us", test.ours, VersionsAreBy(crd, ours))
			expect.Equal(t, "writer", test.writer, VersionsWriter(crd, ours))
		})
	}
}

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
		"Rancher Fleet": {metav1.ObjectMeta{Annotations: map[string]string{
			"meta.helm.sh/release-name": "db", "meta.helm.sh/release-namespace": "prod", "objectset.rio.cattle.io/id": "default-db"}},
			&Writer{Fleet, "prod/db", "the bundle of Rancher Fleet with the release prod/db"}},
		"a manifest that names Helm only": {metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "writer", c.want, WriterOf(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: c.metadata}))
		})
	}
}

// TestSameConversion: Crossplane has copied a conversion if it is the same with the defaults of API servers.
func TestSameConversion(t *testing.T) {
	none := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	expect.Equal(t, "no conversion is the same as the strategy None", true, SameConversion(nil, none))
	withoutPort, another := viaService(), viaService()
	withoutPort.Webhook.ClientConfig.Service.Port = nil
	expect.Equal(t, "no port is the same as 443", true, SameConversion(withoutPort, viaService()))
	another.Webhook.ClientConfig.CABundle = []byte("y")
	expect.Equal(t, "another caBundle is the same", false, SameConversion(withoutPort, another))
}
