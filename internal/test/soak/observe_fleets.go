// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// service returns the name of the Service of the pods that convert for a subject, which is also the
// instance label of these pods.
func service(s subject) string {
	if s.Fleet != "" {
		return names.Fleet(s.Fleet)
	}
	return names.Child(crdOf(s.Name))
}

// servingSecret returns the name of the Secret that these pods mount.
func servingSecret(s subject) string {
	if s.Fleet != "" {
		_, serving, _ := names.FleetSecrets(s.Fleet)
		return serving
	}
	return names.CertificateSecret(crdOf(s.Name))
}

// namedBy returns the Service of the operator that a CRD converts through, and the hash of the
// ruleset; empty if there is none.
func namedBy(crd *apiextensionsv1.CustomResourceDefinition) (service, hash string) {
	webhook := webhookOf(crd)
	if webhook == nil || webhook.Service == nil || webhook.Service.Path == nil {
		return "", ""
	}
	name := webhook.Service.Name
	if name != names.Child(crd.Name) && !slices.Contains(fleetNames, names.FleetOf(name)) {
		return "", ""
	}
	return name, path.Base(*webhook.Service.Path)
}

// observeFleet reads the fleet that the policy uses, and which rulesets of the policy are stored.
func (p *player) observeFleet(ctx context.Context, now *observation) error {
	if name := now.Subject.Fleet; name != "" {
		object := &v1alpha1.ConverterFleet{}
		found, err := p.find(ctx, client.ObjectKey{Name: name}, object)
		if err != nil {
			return err
		}
		if found {
			now.Fleet = object
		}
		now.Size = p.fleets[slices.IndexFunc(p.fleets, func(f fleet) bool { return f.Name == name })].Replicas
		now.Follow = !slices.ContainsFunc(p.subjects, func(s subject) bool { return s.Exists && s.Fleet == name && !s.active() })
	}
	all := &corev1.ConfigMapList{}
	if err := p.cluster.List(ctx, all, client.InNamespace(system), client.HasLabels{names.InstanceLabel}); err != nil {
		return err
	}
	now.Rulesets = map[string][]string{}
	for _, configMap := range all.Items {
		place := configMap.Labels[names.InstanceLabel]
		for _, key := range sortedKeys(configMap.BinaryData) {
			hash, is := conversion.StoredHash(key)
			owner, _ := conversion.StoredOwner(key)
			if is && (owner == names.Child(crdOf(now.Subject.Name)) || place == names.Child(crdOf(now.Subject.Name))) {
				now.Rulesets[place] = append(now.Rulesets[place], hash)
			}
		}
	}
	return nil
}

// failedConversions counts the failed conversions for each CRD of the run, by the metrics of the API
// server.
func (p *player) failedConversions(ctx context.Context) (failed map[string]int, err error) {
	err = p.eventually(ctx, "the metrics of the API server are read", func(ctx context.Context) error {
		text, err := p.metrics.Get().AbsPath("/metrics").DoRaw(ctx)
		if err == nil {
			failed = failedIn(string(text))
		}
		return err
	})
	return failed, err
}

// failedMetric counts the failed conversions between two versions of a CRD.
var failedMetric = regexp.MustCompile(`(?m)^apiserver_crd_conversion_webhook_duration_seconds_count\{crd_name="([^"]+)",[^}]*succeeded="false"[^}]*\} (\d+)`)

func failedIn(text string) map[string]int {
	failed := map[string]int{}
	for _, found := range failedMetric.FindAllStringSubmatch(text, -1) {
		count, err := strconv.Atoi(found[2])
		if err == nil && strings.HasSuffix(found[1], groupOf("")) {
			failed[found[1]] += count
		}
	}
	return failed
}
