// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"cmp"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

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
	if err != nil {
		w.t.Fatal(err)
	}
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
func (w *world) tellRotation(is *v1alpha1.RotationStatus) {
	if is == nil || is.State == w.rotation {
		return
	}
	if w.rotation != "" {
		w.tell("The rotation is %s", is.State)
	}
	w.rotation = is.State
}

// verifyPods lets pods, which follow the Secret at once, prove what is asked of them.
func (w *world) verifyPods() {
	w.observeFleets()
	for _, pod := range w.answerers() {
		if proof := pod.Proof; proof != nil && proof.Reason == "" {
			pod.Proof = &observed.Proof{Warning: proof.Warning, Successor: len(plan.TrustOf(w.observed).Successor) > 0}
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

// wait lets time pass.
func (w *world) wait(passes time.Duration) {
	w.observed.Now = w.observed.Now.Add(passes)
	w.converge()
}
