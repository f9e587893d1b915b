// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"bytes"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// kubectl is the field manager of what a user applies.
const kubectl = "kubectl"

// Begin returns a simulated cluster in a state that was observed without Secrets, probes and checks: every
// converter pod is ready, and answers as it should, and certificates are valid.
func Begin(state observed.Cluster) *Cluster {
	state.Now = state.Now.Truncate(time.Second) // as in a status
	c := &Cluster{State: &state, Fleets: map[string]*Fleet{}, place: observed.FleetOf(state.Policy)}
	for _, fleet := range state.Fleets {
		if fleet.Found {
			c.Fleets[fleet.Name] = &Fleet{Spec: fleet.Spec, Deleted: !fleet.Exists, Replicas: fleet.Replicas, Certificate: c.IssueForFleet(fleet.Name), Others: c.others(fleet)}
		}
	}
	if crd := state.CRD; crd != nil {
		state.CRD = crd.DeepCopy()
		c.ownConversion()
		c.VersionsBy = crds.VersionsWriter(crd, "")
	}
	c.certifyPolicy()
	c.trust()
	c.startPods()
	return c
}

// others is the number of bytes that other policies take of the fullest shard of a fleet.
func (c *Cluster) others(fleet observed.Fleet) int {
	most := 0
	for number, size := range fleet.Shards {
		for _, stored := range c.State.Revisions {
			if stored.ConfigMap == names.Shard(fleet.Name, number) {
				size -= len(stored.Stored)
			}
		}
		most = max(most, size)
	}
	return most
}

// ownConversion finds the field manager of spec.conversion. It knows of one: the last who wrote.
func (c *Cluster) ownConversion() {
	crd, owner := c.State.CRD, names.ManagedBy
	if !crds.ConversionIsBy(crd, crd.Spec.Conversion, owner) {
		owner = crds.ConversionWriter(crd, crd.Spec.Conversion, owner)
	}
	c.Owners = map[string]string{}
	for path := range c.fields(crd.Spec.Conversion) {
		c.Owners[path] = owner
	}
}

// certifyPolicy issues the certificate that the policy has, according to its status.
func (c *Cluster) certifyPolicy() {
	state := c.State
	state.Authority, state.Certificate, state.OwnCertificate, state.Source = nil, nil, nil, nil
	c.assumeSource()
	if fleet := c.Fleets[c.place]; fleet != nil {
		state.Certificate = fleet.Certificate
	}
	if state.Policy.Status.Certificate == nil || c.place != "" {
		return
	}
	authority, serving := c.issued(observed.CertificateSecret(state.Policy), state.ServerName())
	if state.Source != nil {
		state.Source.DeepCopyInto(serving)
		serving.Name = observed.CertificateSecret(state.Policy)
	} else {
		state.Authority = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: names.AuthoritySecret(state.Policy.Name)},
			Data: map[string][]byte{corev1.TLSCertKey: authority.Certificate, corev1.TLSPrivateKeyKey: authority.Key}}
		if own := state.Policy.Spec.Certificates.SelfManaged; own != nil {
			state.Authority.Annotations = map[string]string{certificates.TriggerAnnotation: own.RotationTrigger}
		}
	}
	told := state.Now.Add(-24 * time.Hour).UTC().Format(time.RFC3339)
	serving.Annotations = map[string]string{certificates.TrustedAnnotation: names.Hash(string(serving.Data[observed.CAKey]))[:16] + " " + told}
	state.Certificate = serving
}

// issued returns a serving certificate for a name, in a Secret, and its authority.
func (c *Cluster) issued(secret, serverName string) (authority pki.KeyPair, serving *corev1.Secret) {
	authority, err := pki.NewAuthority(serverName, c.State.Now, 10000*time.Hour)
	c.note(err)
	leaf, err := pki.IssueLeaf(authority, serverName, c.State.Now, 5000*time.Hour)
	c.note(err)
	return authority, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret}, Data: map[string][]byte{
		corev1.TLSCertKey: leaf.Certificate, corev1.TLSPrivateKeyKey: leaf.Key, observed.CAKey: authority.Certificate}}
}

// assumeSource lets the Secret of another client exist that the policy takes its certificate from.
func (c *Cluster) assumeSource() {
	if name := certificates.SourceSecret(c.State.Policy); name != "" && (c.State.Source == nil || c.State.Source.Name != name) {
		_, c.State.Source = c.issued(name, c.State.ServerName())
	}
}

// trust lets API servers trust the simulated certificates where they trust those of the operator.
func (c *Cluster) trust() {
	state := c.State
	if state.CRD == nil || !state.PointsHere() || len(state.ActiveCABundle()) == 0 {
		return
	}
	bundle, before := []byte(nil), state.ActiveCABundle()
	if fleet := c.Fleets[state.NamedFleet()]; fleet != nil {
		bundle = fleet.Certificate.Data[observed.CAKey]
	} else if state.NamedFleet() == "" && state.Certificate != nil {
		bundle = state.Certificate.Data[observed.CAKey]
	}
	if bundle == nil || !state.ConversionIsOurs() {
		return
	}
	state.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle = bundle
	if state.Composite != nil {
		state.Composite.Spec.Conversion.Webhook.ClientConfig.CABundle = bundle
	}
	if state.Admission != nil {
		state.Admission = state.Admission.DeepCopy()
		for i := range state.Admission.Webhooks {
			if config := &state.Admission.Webhooks[i].ClientConfig; bytes.Equal(config.CABundle, before) {
				config.CABundle = bundle
			}
		}
	}
}

// startPods lets all converter pods be ready, with everything that they mount.
func (c *Cluster) startPods() {
	state := c.State
	state.PodFailure = observed.PodTrouble{}
	for i := range state.Pods {
		pod := &state.Pods[i]
		pod.Ready, pod.Scheduled, pod.Trouble, pod.Proof = true, true, observed.PodTrouble{}, &observed.Proof{}
		if !pod.Image {
			pod.Revisions = c.StoredRulesets(pod.Fleet)
		}
	}
	for i := range state.External.Endpoints {
		state.External.Endpoints[i].Ready, state.External.Endpoints[i].Proof = true, &observed.Proof{}
	}
	for name := range c.Fleets {
		if !slices.ContainsFunc(state.Pods, func(pod observed.Pod) bool { return pod.Fleet == name }) {
			c.startFleet(name)
		}
	}
}

// ApplyPolicy changes the spec of the policy, as a user does, and reports whether that changes anything.
func (c *Cluster) ApplyPolicy(policy *v1alpha1.ConversionPolicy) (changed bool) {
	current := c.State.Policy.DeepCopy()
	if changed = !equality.Semantic.DeepEqual(current.Spec, policy.Spec); changed {
		current.Spec = *policy.Spec.DeepCopy()
		current.Generation++
	}
	c.State.Policy = current
	c.assumeSource()
	return changed
}

// ApplyDefinition creates or changes the CustomResourceDefinition, as a user does, and reports whether that
// changes anything. If it has no spec.conversion, that stays.
func (c *Cluster) ApplyDefinition(crd *apiextensionsv1.CustomResourceDefinition) (changed bool) {
	before := c.State.CRD
	conversion := crd.Spec.Conversion
	if before != nil && equality.Semantic.DeepEqual(before.Spec.Versions, crd.Spec.Versions) && (conversion == nil || equality.Semantic.DeepEqual(before.Spec.Conversion, conversion)) {
		return false
	}
	c.ApplyCRD(crd.DeepCopy())
	if before == nil {
		c.State.CRD.Spec.Conversion = nil
	}
	if before == nil || conversion != nil {
		c.Write(kubectl, conversion.DeepCopy())
	}
	return true
}

// Delete deletes the policy, as a user does.
func (c *Cluster) Delete() {
	c.State.Policy = c.State.Policy.DeepCopy()
	c.State.Policy.DeletionTimestamp = &metav1.Time{Time: c.State.Now}
}
