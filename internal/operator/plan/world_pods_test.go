// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	admissionregistrationv1apply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1apply "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// called says where API servers call a converter: by its plan, where it is one of ours.
func called(client *apiextensionsv1.WebhookClientConfig) string {
	switch service := client.Service; {
	case service == nil:
		return *client.URL
	case service.Namespace != "conversion-system":
		return fmt.Sprintf("Service %s/%s:%d%s", service.Namespace, service.Name, *service.Port, *service.Path)
	case *service.Port == 443 && names.FleetOf(service.Name) != "":
		return path.Base(*service.Path) + " of fleet " + names.FleetOf(service.Name)
	case *service.Port == 443:
		return path.Base(*service.Path)
	default:
		return fmt.Sprintf("port %d", *service.Port)
	}
}

// startImage lets the pods of an image start, beside all others.
func (w *world) startImage(identity string, deployment *appsv1apply.DeploymentApplyConfiguration) {
	w.t.Helper()
	var endpoint observed.ImageEndpoint
	expect.NoError(w.t, json.Unmarshal([]byte(deployment.Annotations[names.EndpointAnnotation]), &endpoint))
	stored := observed.StoredRevision{Hash: identity, Readable: true, Image: &endpoint}
	w.observed.Revisions = slices.DeleteFunc(w.observed.Revisions, func(there observed.StoredRevision) bool { return there.Hash == identity })
	w.observed.Revisions = append(w.observed.Revisions, stored)
	isOfImage := func(pod observed.Pod) bool { return slices.Contains(pod.Revisions, identity) }
	if w.holdBack || slices.ContainsFunc(w.observed.Pods, isOfImage) {
		return
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	w.tell("  pods of %s start beside others", *container.Image)
	proof := observed.Proof{}
	if w.misbehave != "" {
		proof = observed.Proof{Reason: "CanaryFailed", Message: w.misbehave}
	}
	for i := range *deployment.Spec.Replicas {
		w.observed.Pods = append(w.observed.Pods, observed.Pod{Name: fmt.Sprintf("%s-%d", *deployment.Name, i),
			Revisions: []string{identity}, Image: true, Ready: true, Scheduled: true, Proof: &proof})
	}
	if w.observed.PortEndpoints == nil {
		w.observed.PortEndpoints = map[string]int{}
	}
	w.observed.PortEndpoints[*container.Ports[0].Name] = int(*deployment.Spec.Replicas)
}

func (w *world) deleteDeployment(name string) {
	if name == names.Child(crontabs) {
		w.observed.Deployed, w.observed.Endpoints = false, 0
		w.observed.Pods = slices.DeleteFunc(w.observed.Pods, func(pod observed.Pod) bool { return !pod.Image && pod.Fleet == "" })
		return
	}
	ofDeployment := func(identity string) bool { return names.Image(crontabs, identity) == name }
	w.observed.Pods = slices.DeleteFunc(w.observed.Pods, func(pod observed.Pod) bool { return pod.Image && ofDeployment(pod.Revisions[0]) })
	w.observed.Revisions = slices.DeleteFunc(w.observed.Revisions, func(stored observed.StoredRevision) bool { return ofDeployment(stored.Hash) })
}

// applied lets a Deployment's pods start with the stored rulesets.
func (w *world) applied(object runtime.ApplyConfiguration) {
	switch object := object.(type) {
	case *appsv1apply.DeploymentApplyConfiguration:
		if identity := object.Labels[names.RevisionLabel]; identity != "" {
			w.startImage(identity, object)
			return
		}
		w.observed.Deployed = true
		if w.holdBack {
			return
		}
		before := map[string]observed.Pod{}
		for _, pod := range w.observed.Pods {
			if !pod.Image && pod.Fleet == "" {
				before[pod.Name] = pod
			}
		}
		if w.lies && len(before) > 0 {
			return // pods stay unchanged
		}
		proof := observed.Proof{}
		if w.misbehave != "" {
			proof = observed.Proof{Reason: "CanaryFailed", Message: w.misbehave}
		}
		w.observed.Pods = slices.DeleteFunc(w.observed.Pods, func(pod observed.Pod) bool { return !pod.Image && pod.Fleet == "" })
		w.observed.Endpoints = int(*object.Spec.Replicas)
		for i := range *object.Spec.Replicas {
			pod := observed.Pod{Name: fmt.Sprintf("converter-%d", i), Revisions: w.storedRulesets("")}
			if known, runs := before[pod.Name]; runs {
				pod = known
			}
			pod.Ready, pod.Scheduled, pod.Proof = true, true, &proof
			w.observed.Pods = append(w.observed.Pods, pod)
		}
	case *admissionregistrationv1apply.ValidatingWebhookConfigurationApplyConfiguration:
		w.admit(object)
	case *corev1apply.ServiceApplyConfiguration:
		w.observed.Exposed = true
	case *corev1apply.ConfigMapApplyConfiguration:
		if *object.Name == names.Rulesets(crontabs) {
			w.store(object.BinaryData)
		}
	case *corev1apply.ServiceAccountApplyConfiguration:
		w.observed.Rights = true
	case *rbacv1apply.ClusterRoleApplyConfiguration:
		if w.observed.Granted != nil {
			w.t.Fatalf("it makes the ClusterRole %s, which another client is to make", *object.Name)
		}
		*w.rights(*object.Name) = true
	}
}

// store replaces the stored rulesets.
func (w *world) store(rulesets map[string][]byte) {
	w.observed.Revisions = slices.DeleteFunc(w.observed.Revisions, func(stored observed.StoredRevision) bool {
		return stored.Image == nil && fleetOf(stored) == "" && rulesets[conversion.StoredName(names.Child(crontabs), stored.Hash)] == nil
	})
	for _, key := range slices.Sorted(maps.Keys(rulesets)) {
		hash, _ := conversion.StoredHash(key)
		if !slices.ContainsFunc(w.observed.Revisions, func(stored observed.StoredRevision) bool { return stored.Hash == hash }) {
			w.observed.Revisions = append(w.observed.Revisions, observed.StoredRevision{Hash: hash, Readable: true, Stored: rulesets[key]})
		}
	}
}

// storedRulesets are the revisions that are stored in a fleet, or for the pods of the policy alone,
// in the order in which they came.
func (w *world) storedRulesets(fleet string) []string {
	hashes := []string{}
	for _, stored := range w.observed.Revisions {
		if stored.Image == nil && fleetOf(stored) == fleet {
			hashes = append(hashes, stored.Hash)
		}
	}
	return hashes
}

// refresh lets a pod load the stored rulesets.
func (w *world) refresh(s step.RefreshPod) {
	for i := range w.observed.Pods {
		pod := &w.observed.Pods[i]
		if pod.Name != s.Name {
			continue
		}
		if s.Annotation == names.CertificateAnnotation {
			pod.Certificate = s.Value
			continue
		}
		pod.Ruleset = s.Value
		if !w.holdBack && !w.lies {
			pod.Revisions = w.storedRulesets(pod.Fleet)
			w.tell("  it loads %s", strings.Join(pod.Revisions, " and "))
		}
	}
}

// inOrder lists revisions as they came.
func (w *world) inOrder(hashes []string) string {
	var stored []string
	for _, revision := range w.observed.Revisions {
		if revision.Image == nil {
			stored = append(stored, revision.Hash)
		}
	}
	ordered := slices.DeleteFunc(stored, func(hash string) bool { return !slices.Contains(hashes, hash) })
	for _, hash := range hashes {
		if !slices.Contains(ordered, hash) {
			ordered = append(ordered, hash)
		}
	}
	return strings.Join(ordered, " and ")
}

// certify carries out a step on certificates as the controller does.
func (w *world) certify(s step.Step) {
	w.t.Helper()
	switch s := s.(type) {
	case step.IssueAuthority:
		pair := w.pair(pki.NewAuthority(crontabs, w.observed.Now, s.Lifetime))
		data := map[string][]byte{corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key}
		if s.Next {
			data = map[string][]byte{certificates.NextCertificateKey: pair.Certificate, certificates.NextKeyKey: pair.Key}
		}
		w.observed.Authority = w.patched(w.observed.Authority, s.SecretName, s.ResourceVersion, data,
			map[string]string{certificates.TriggerAnnotation: s.Trigger})
	case step.PromoteAuthority:
		w.observed.Authority = w.patched(w.observed.Authority, s.SecretName, s.ResourceVersion, map[string][]byte{
			corev1.TLSCertKey: s.Authority.Certificate, corev1.TLSPrivateKeyKey: s.Authority.Key,
			certificates.NextCertificateKey: nil, certificates.NextKeyKey: nil}, nil)
	case step.WriteCertificate:
		pair := s.Pair
		if s.Signer != nil {
			pair = w.pair(pki.IssueLeaf(*s.Signer, s.DNSName, w.observed.Now, s.Lifetime))
		}
		of := &w.observed.Certificate
		if observed.FleetOf(w.observed.Policy) != "" {
			of = &w.observed.OwnCertificate
		}
		*of = w.patched(*of, s.SecretName, s.ResourceVersion, map[string][]byte{
			corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key, observed.CAKey: s.CABundle,
		}, map[string]string{certificates.TrustedAnnotation: s.Trusted})
	case step.RefreshPod:
		w.refresh(s)
	}
}

func (w *world) pair(pair pki.KeyPair, err error) pki.KeyPair {
	w.t.Helper()
	expect.NoError(w.t, err)
	return pair
}

// patched is a Secret with what a step writes; what is nil is removed. Like the
// API server, it refuses a step that was decided on another state.
func (w *world) patched(secret *corev1.Secret, name, version string, data map[string][]byte, annotations map[string]string) *corev1.Secret {
	w.t.Helper()
	if secret == nil {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
	} else if secret.ResourceVersion != version {
		w.t.Fatalf("Secret %s is written at resourceVersion %q and has %q", name, version, secret.ResourceVersion)
	}
	secret = secret.DeepCopy()
	next, _ := strconv.Atoi(secret.ResourceVersion)
	secret.ResourceVersion = strconv.Itoa(next + 1)
	if secret.Data == nil {
		secret.Data, secret.Annotations = map[string][]byte{}, map[string]string{}
	}
	for key, value := range data {
		secret.Data[key] = value
		if value == nil {
			delete(secret.Data, key)
		}
	}
	maps.Copy(secret.Annotations, annotations)
	return secret
}

// describeWrite tells what changes in the Secret that pods mount.
func (w *world) describeWrite(s step.WriteCertificate) string {
	var changes []string
	before := w.observed.Certificate
	if before == nil {
		before = &corev1.Secret{}
	}
	switch {
	case s.Signer != nil:
		changes = append(changes, "a new certificate")
	case !bytes.Equal(s.Pair.Certificate, before.Data[corev1.TLSCertKey]):
		changes = append(changes, "the certificate that is offered")
	}
	if !bytes.Equal(s.CABundle, before.Data[observed.CAKey]) {
		number := map[int]string{1: "one authority is", 2: "two authorities are"}[strings.Count(string(s.CABundle), "BEGIN")]
		changes = append(changes, number+" to be trusted")
	}
	if s.Trusted != before.Annotations[certificates.TrustedAnnotation] {
		_, since, _ := strings.Cut(s.Trusted, " ")
		changes = append(changes, "API servers have been told by "+since)
	}
	return strings.Join(changes, "; ")
}

// tellRotation tells the states of a rotation, and of one that is none nothing.
func (w *world) tellRotation(is *v1alpha1.CertificateStatus) {
	if is == nil || is.Rotation == "" || is.Rotation == w.rotation {
		return
	}
	if w.rotation != "" {
		w.tell("The rotation is %s", is.Rotation)
	}
	w.rotation = is.Rotation
}

// verifyPods lets pods, which follow the Secret at once, prove what is asked of them.
func (w *world) verifyPods() {
	w.observeFleets()
	successor := len(plan.TrustOf(w.observed).Successor) > 0
	for _, pod := range w.answerers() {
		if proof := pod.Proof; proof != nil && proof.Reason == "" {
			pod.Proof = &observed.Proof{Warning: proof.Warning, Successor: successor}
		}
	}
}

// answerers are the pods, and the endpoints of a converter that users run.
func (w *world) answerers() []*observed.Pod {
	var all []*observed.Pod
	for i := range w.observed.Pods {
		all = append(all, &w.observed.Pods[i])
	}
	for i := range w.observed.External.Endpoints {
		all = append(all, &w.observed.External.Endpoints[i])
	}
	return all
}

// serverName is the name that API servers verify.
func (w *world) serverName() string {
	return cmp.Or(observed.ExternalServerName(w.observed.Policy.Spec.Converter), names.ServerName(crontabs, "conversion-system"))
}

// theirs is a Secret of another client: a certificate for the converter by an
// authority of its own.
func (w *world) theirs(name string) *corev1.Secret {
	w.t.Helper()
	authority := w.pair(pki.NewAuthority("theirs", w.observed.Now, 1000*time.Hour))
	leaf := w.pair(pki.IssueLeaf(authority, w.serverName(), w.observed.Now, 300*time.Hour))
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{
		corev1.TLSCertKey: leaf.Certificate, corev1.TLSPrivateKeyKey: leaf.Key, observed.CAKey: authority.Certificate}}
}
