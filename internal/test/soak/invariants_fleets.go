// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Invariants of fleets, and of the places where policies are served.

// convertsElsewhere compares the Service in the CRD with that of the wanted pods.
func convertsElsewhere(now, _ observation) []string {
	if want := service(now.Subject); now.Active && now.Service != want {
		return []string{fmt.Sprintf("the definition converts through the Service %s; expected %s", now.Service, want)}
	}
	return nil
}

// rulesetMissing: the ruleset that the CRD names is stored where pods mount it, and every ready pod
// has loaded it.
func rulesetMissing(now, _ observation) []string {
	if !now.Active {
		return nil
	}
	var wrong []string
	if !slices.Contains(now.Rulesets[now.Service], now.Ruleset) {
		wrong = append(wrong, fmt.Sprintf("the definition names the ruleset %s of %s, where %v are stored", now.Ruleset, now.Service, now.Rulesets[now.Service]))
	}
	for _, pod := range now.Pods {
		if pod.Ready && !slices.Contains(pod.Rulesets, now.Ruleset) {
			wrong = append(wrong, fmt.Sprintf("the definition names the ruleset %s, and pod %s has %v: %s", now.Ruleset, pod.Name, pod.Rulesets, pod.Refused))
		}
	}
	return wrong
}

// rulesetsLeft: a policy stores rulesets only where its CRD converts, unless it may not change them.
func rulesetsLeft(now, _ observation) []string {
	var wrong []string
	for _, place := range sortedKeys(now.Rulesets) {
		if !now.Subject.Exists || now.Subject.active() && place != service(now.Subject) {
			wrong = append(wrong, fmt.Sprintf("%s has the rulesets %v", place, now.Rulesets[place]))
		}
	}
	return wrong
}

// fleetNotReady: the fleet of a policy has its size, and has completed what was changed. A rotation
// of its authority waits for policies that do not change their CRD.
func fleetNotReady(now, _ observation) []string {
	if now.Subject.Fleet == "" || !now.Subject.Exists {
		return nil
	}
	if now.Fleet == nil {
		return []string{"there is no fleet " + now.Subject.Fleet}
	}
	status := now.Fleet.Status
	var wrong []string
	if status.ObservedGeneration != now.Fleet.Generation {
		wrong = append(wrong, "the status is not of the fleet's generation")
	}
	if int(status.Replicas) != now.Size || int(status.ReadyReplicas) != now.Size || len(now.Pods) != now.Size {
		wrong = append(wrong, fmt.Sprintf("%d pods, of which the status counts %d, and %d as ready; expected %d", len(now.Pods), status.Replicas, status.ReadyReplicas, now.Size))
	}
	for _, condition := range []string{v1alpha1.ReadyCondition, v1alpha1.CertificatesReadyCondition, v1alpha1.WebhookAvailableCondition} {
		found := apimeta.FindStatusCondition(status.Conditions, condition)
		waits := condition == v1alpha1.CertificatesReadyCondition && !now.Follow
		if !waits && (found == nil || found.Status != metav1.ConditionTrue) {
			wrong = append(wrong, fmt.Sprintf("%s of the fleet is %+v", condition, found))
		}
	}
	if rotation := status.Rotation; now.Follow && rotation != nil && rotation.State != v1alpha1.RotationIdle {
		wrong = append(wrong, fmt.Sprintf("the authority of the fleet rotates: %s", rotation.State))
	}
	if apimeta.FindStatusCondition(status.Conditions, v1alpha1.DeletionBlockedCondition) != nil {
		wrong = append(wrong, "the fleet is being deleted")
	}
	return wrong
}
