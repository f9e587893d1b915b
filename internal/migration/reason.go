// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Why an object failed, in one word.
const (
	// ReasonConversionFailed is an object that the converter refuses.
	ReasonConversionFailed = "ConversionFailed"
	// ReasonInvalid is an object that the schema refuses.
	ReasonInvalid = "Invalid"
	// ReasonAdmissionDenied is an object that an admission webhook, an admission
	// policy, or another admission plugin refuses.
	ReasonAdmissionDenied = "AdmissionDenied"
	// ReasonTooLarge is an object that etcd or the API server does not take.
	ReasonTooLarge = "TooLarge"
	// ReasonNamespaceTerminating is an object whose namespace is being deleted.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonConflict is an object that others wrote at every try.
	ReasonConflict = "Conflict"
	// ReasonNotFound is an object that is listed but cannot be patched.
	ReasonNotFound = "NotFound"
	// ReasonUnavailable is an object for which a webhook, etcd or the API server
	// did not answer, while they answered for others.
	ReasonUnavailable = "Unavailable"
	// ReasonUnreadable is an object that cannot be listed.
	ReasonUnreadable = "Unreadable"
	// ReasonNotServed is preserved data of a version that is not served.
	ReasonNotServed = "NotServed"
	// ReasonDoesNotFit is a preserved value that its field may not have.
	ReasonDoesNotFit = "DoesNotFit"
	// ReasonRefused is everything else.
	ReasonRefused = "Refused"
)

// reasonsByCode are those that the HTTP status alone tells.
var reasonsByCode = map[int32]string{
	http.StatusConflict:              ReasonConflict,
	http.StatusNotFound:              ReasonNotFound,
	http.StatusUnprocessableEntity:   ReasonInvalid,
	http.StatusRequestEntityTooLarge: ReasonTooLarge,
	http.StatusForbidden:             ReasonAdmissionDenied,
}

// reasonOf reads an answer to a patch. The messages are those of k8s.io/apiserver
// pkg/admission/plugin/webhook/errors, of etcd, and of
// k8s.io/apiextensions-apiserver pkg/apiserver/conversion.
func reasonOf(err error) string {
	status := statusOf(err)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ReasonNamespaceTerminating
	case status != nil && tooLargeForEtcd.MatchString(status.Message):
		return ReasonTooLarge
	case infrastructure(err):
		return ReasonUnavailable
	case strings.Contains(status.Message, "conversion webhook for "):
		return ReasonConversionFailed
	case denied.MatchString(status.Message):
		return ReasonAdmissionDenied
	}
	if reason, ok := reasonsByCode[status.Code]; ok {
		return reason
	}
	return ReasonRefused
}

var (
	// denied matches admission webhooks, and admission policies of which some answer
	// as the schema does.
	denied          = regexp.MustCompile(`denied (the )?request: `)
	tooLargeForEtcd = regexp.MustCompile(`etcdserver: request is too large|trying to send message larger than max`)
	// unanswered matches the 500 of a webhook, or an etcd, that is away. What a
	// converter itself answers follows on "failed:" without these words.
	unanswered = regexp.MustCompile(`failed calling webhook|etcdserver: |` +
		`conversion webhook for .* failed: (Post "|an error on the server|the server )`)
)

// infrastructure reports whether an error says nothing about the object: the API
// server, etcd or a webhook is away or overloaded.
func infrastructure(err error) bool {
	status := statusOf(err)
	switch {
	case status == nil || errors.Is(err, errOwnersDropped):
		return true
	case status.Code == http.StatusInternalServerError:
		return unanswered.MatchString(status.Message) && !tooLargeForEtcd.MatchString(status.Message)
	}
	return remedies[status.Code] == awaitServer
}

// suggest is a command that shows the fault to a person.
func (e *Engine) suggest(reason string, object *metav1.PartialObjectMetadata) string {
	target := fmt.Sprintf("%s.%s.%s %s", e.Resource.Resource, e.Resource.Version, e.Resource.Group, object.Name)
	if object.Namespace != "" {
		target += " --namespace " + object.Namespace
	}
	switch reason {
	case ReasonNamespaceTerminating:
		return "kubectl get namespace " + object.Namespace + " --output yaml"
	case ReasonConflict, ReasonNotFound:
		return "kubectl get " + target + " --watch --output yaml --show-managed-fields"
	case ReasonTooLarge:
		return "kubectl get " + target + " --output json --show-managed-fields | wc --bytes"
	case ReasonConversionFailed, ReasonUnreadable, ReasonDoesNotFit:
		return "kubectl get " + target + " --output yaml"
	}
	return "kubectl patch " + target + " --type merge --patch '{}' --dry-run=server"
}
