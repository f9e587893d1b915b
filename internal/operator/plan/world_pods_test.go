// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
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
