// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
)

// The formats of what is written.
const (
	Manifests = "manifests"
	Kustomize = "kustomize"
	Helm      = "helm"
)

// The sources of the serving certificate.
const (
	// ByCertManager asks cert-manager, whose injector writes caBundle.
	ByCertManager = "cert-manager"
	// ByHelm generates a certificate in the template of a chart, once.
	ByHelm = "helm"
)

// MaxName is the longest name of a converter: the names of its Jobs are longer, and become labels.
const MaxName = 45

// Converter is what a project ships for one CustomResourceDefinition.
type Converter struct {
	CRD *apiextensionsv1.CustomResourceDefinition
	// Pods are those of the policy, if it has pods of its own.
	Pods    v1alpha1.ConverterPods
	Ruleset *conversion.Ruleset
	// Previous are stored rulesets of an earlier export, by their names. Pods serve them, too.
	Previous map[string][]byte
	// Name of the Deployment and the Service, and the beginning of all other names.
	Name string
	// Namespace of everything; that of the release in a chart.
	Namespace, Image string
	// Certificates is the source of the certificate.
	Certificates string
}

// Files returns the files of a format by their path in a folder.
func (c Converter) Files(format string) (map[string]string, error) {
	if format == Helm {
		text, err := c.template()
		return map[string]string{c.Name + ".yaml": text}, err
	}
	objects, err := c.objects()
	if err != nil {
		return nil, err
	}
	pods, migration := documents(append(objects, c.checkJob())...), documents(c.migration()...)
	if format == Manifests {
		crd, err := c.definition()
		return map[string]string{"converter.yaml": pods, "crd.yaml": crd, "migrate.yaml": migration}, err
	}
	return map[string]string{
		"converter/converter.yaml": pods, "converter/kustomization.yaml": kustomization("Kustomization", "resources", "converter.yaml"),
		"conversion/conversion.yaml": documents(c.patch()), "conversion/kustomization.yaml": kustomization("Component", "patches", "path: conversion.yaml"),
		"migrate/migrate.yaml": migration, "migrate/kustomization.yaml": kustomization("Kustomization", "resources", "migrate.yaml"),
	}, nil
}

func kustomization(kind, list, item string) string {
	version := map[string]string{"Kustomization": "v1beta1", "Component": "v1alpha1"}[kind]
	return "apiVersion: kustomize.config.k8s.io/" + version + "\nkind: " + kind + "\n" + list + ":\n- " + item + "\n"
}

// documents returns objects as a YAML stream.
func documents(objects ...any) string {
	var stream strings.Builder
	for _, object := range objects {
		text, _ := yaml.Marshal(object) // objects of the API cannot fail
		stream.WriteString("---\n" + string(text))
	}
	return stream.String()
}

// hash is that of the ruleset, and key the name of its stored form.
func (c Converter) hash() string { return c.Ruleset.Hash() }
func (c Converter) key() string  { return conversion.StoredName(c.Name, c.hash()) }

// rulesets are the stored rulesets by their names.
func (c Converter) rulesets() (map[string][]byte, error) {
	text, err := c.Ruleset.Marshal()
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{c.key(): conversion.Store(text)}
	for name, stored := range c.Previous {
		hash, _ := conversion.StoredHash(name)
		all[conversion.StoredName(c.Name, hash)] = stored
	}
	return all, nil
}

// CheckJob is the name of the Job that checks the pods.
func (c Converter) CheckJob() string { return *c.checkJob().Name }

// conversion is spec.conversion for the converter. It has no caBundle: cert-manager injects it, or a chart has it.
func (c Converter) conversion() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"},
		ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
			Namespace: c.Namespace, Name: c.Name, Path: new(converter.ConvertPath + "/" + c.hash()), Port: new(int32(workload.ServicePort)),
		}},
	}}
}

// annotations are those of the CustomResourceDefinition.
func (c Converter) annotations() map[string]string {
	found := map[string]string{names.ExportedAnnotation: c.Namespace + "/" + c.Name}
	if c.Certificates == ByCertManager {
		found[injectAnnotation] = c.Namespace + "/" + c.certificate()
	}
	return found
}

// definition is the CustomResourceDefinition with its conversion, in YAML.
func (c Converter) definition() (string, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: c.CRD.Name, Labels: c.CRD.Labels, Annotations: maps.Clone(c.CRD.Annotations)}, Spec: c.CRD.Spec}
	crd.APIVersion, crd.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	delete(crd.Annotations, corev1.LastAppliedConfigAnnotation)
	for name, value := range c.annotations() {
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, name, value)
	}
	crd.Spec.Conversion = c.conversion()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return "", err
	}
	delete(content, "status")
	return documents(content), nil
}

// patch changes the CustomResourceDefinition in a kustomization.
func (c Converter) patch() map[string]any {
	return map[string]any{
		"apiVersion": apiextensionsv1.SchemeGroupVersion.String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": c.CRD.Name, "annotations": c.annotations()},
		"spec":     map[string]any{"conversion": c.conversion()},
	}
}
