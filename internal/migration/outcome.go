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
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// outcome is what the run did with one object.
type outcome int

const (
	rewritten outcome = iota
	current
	gone
	failed
)

// result is the outcome of one object.
type result struct {
	// object is the name, or namespace/name.
	object  string
	outcome outcome
	// reason and message say why the object failed, and command shows it.
	reason  v1alpha1.MigrationFailureReason
	message string
	command string
	// edited is set when the patch changed more than the encoding: an admission
	// webhook edits objects as they are written.
	edited bool
	// after is the object as the API server returned it, or nil.
	after *metav1.PartialObjectMetadata
	// counted is true if preserved has the values that the annotations of the object preserve.
	counted   bool
	preserved []conversion.Preserved
	// restored is true if a preserved value was restored to a field. refused are the versions at
	// which that failed.
	restored bool
	refused  []contract.Refusal
	// path is the fallback by which the API server accepted the object, or empty.
	path v1alpha1.MigrationFallback
}

func resultOf(object *metav1.PartialObjectMetadata, o outcome) result {
	return result{object: keyOf(object), outcome: o}
}

func (e *Engine) failure(object *metav1.PartialObjectMetadata, cause error) result {
	reason := reasonOf(cause)
	return result{
		object: keyOf(object), outcome: failed,
		reason: reason, message: cause.Error(), command: e.suggest(reason, object),
	}
}

// tooLarge is the result of an object that does not fit completely into the storage version.
func (e *Engine) tooLarge(object *metav1.PartialObjectMetadata, cause error) result {
	return result{object: keyOf(object), outcome: failed, reason: v1alpha1.FailureTooLarge, message: cause.Error(), command: e.suggest(v1alpha1.FailureTooLarge, object)}
}

func (r result) failure() v1alpha1.MigrationFailure {
	return v1alpha1.MigrationFailure{Object: r.object, Reason: r.reason, Message: truncate(r.message, maxMessage), Command: r.command}
}

func keyOf(object *metav1.PartialObjectMetadata) string {
	if object.Namespace == "" {
		return object.Name
	}
	return object.Namespace + "/" + object.Name
}

// resultOfPatch compares an object before and after a patch. The API server stores a patched object
// only if its bytes differ, and they include the version that the object is encoded in.
func resultOfPatch(before, after *metav1.PartialObjectMetadata) result {
	r := resultOf(before, rewritten)
	if before.ResourceVersion == after.ResourceVersion {
		r.outcome = current
	}
	r.after, r.edited = after, edited(before, after)
	return r
}

// edited reports whether more than the encoding of the object changed, by its metadata: fields that
// a webhook sets are recorded in managedFields.
func edited(before, after *metav1.PartialObjectMetadata) bool {
	was, is := before.ObjectMeta.DeepCopy(), after.ObjectMeta.DeepCopy()
	was.ResourceVersion, is.ResourceVersion = "", ""
	return !equality.Semantic.DeepEqual(was, is)
}

// newer reports whether the object was written after the barrier. It is false if the
// resourceVersion cannot be compared.
func newer(object *metav1.PartialObjectMetadata, barrier string) bool {
	order, err := resourceversion.CompareResourceVersion(object.ResourceVersion, barrier)
	return err == nil && order > 0
}

// remedy is the reaction to a failed patch.
type remedy int

const (
	// giveUp lists the object as failed: the API server would refuse it again.
	giveUp remedy = iota
	// tryAgain retries later: a converter or an admission webhook may recover.
	tryAgain
	// awaitServer waits for the API server before the next attempt: the cause may not be the
	// object.
	awaitServer
	// refetch reads the object again: it was written or deleted meanwhile.
	refetch
	// stopRun aborts the run: no object can be patched.
	stopRun
	// restartPod ends the pod: no object can be patched until the pod has its rights back.
	restartPod
)

// remedies by HTTP status. A failed conversion is a plain 500, like an admission webhook that does
// not answer. 422, 413, a 403 of admission, and all others concern the object only.
var remedies = map[int32]remedy{
	http.StatusUnauthorized:        restartPod,
	http.StatusNotFound:            refetch,
	http.StatusMethodNotAllowed:    stopRun,
	http.StatusRequestTimeout:      awaitServer,
	http.StatusConflict:            refetch,
	http.StatusTooManyRequests:     awaitServer,
	http.StatusInternalServerError: tryAgain,
	http.StatusBadGateway:          awaitServer,
	http.StatusServiceUnavailable:  awaitServer,
	http.StatusGatewayTimeout:      awaitServer,
}

// remedyFor returns the reaction to a failed patch of the named object.
func remedyFor(err error, name string) remedy {
	status := statusOf(err)
	switch {
	case status == nil:
		return awaitServer
	case deniesObject(status):
		return giveUp
	case status.Code == http.StatusNotFound && !isObjectNotFound(err, status, name):
		return stopRun
	case status.Code == http.StatusForbidden && withoutRights.MatchString(status.Message):
		return restartPod
	case tooLargeForEtcd.MatchString(status.Message):
		return giveUp
	}
	return remedies[status.Code]
}

// deniesObject reports whether admission denied the object. Webhooks choose the status of that, also
// one that otherwise concerns the user or the resource. They may deny with the status of an overload,
// or with an internal error, to be called again.
func deniesObject(status *metav1.Status) bool {
	return denied.MatchString(status.Message) && status.Code < http.StatusInternalServerError && remedies[status.Code] != awaitServer
}

// withoutRights matches the message for a user who may not patch the resource. Messages of
// admission, which concern one object, differ. From k8s.io/apiserver
// pkg/endpoints/handlers/responsewriters/errors.go, forbiddenMessage.
var withoutRights = regexp.MustCompile(`^\S+( "[^"]*")? is forbidden: User "[^"]*" cannot patch resource "`)

// isObjectNotFound distinguishes "object not found" from the 404 of an endpoint that does not
// exist, which client-go also turns into a NotFound.
func isObjectNotFound(err error, status *metav1.Status, name string) bool {
	return status.Reason == metav1.StatusReasonNotFound &&
		status.Details != nil && status.Details.Name == name &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// transient reports whether an error may pass without a change: the connection failed, or the API
// server is overloaded, starting, or cannot reach etcd or a webhook.
func transient(err error) bool {
	status := statusOf(err)
	if status == nil {
		return !errors.Is(err, errSuperseded)
	}
	r := remedies[status.Code]
	return r == awaitServer || r == tryAgain
}

// statusOf returns the Status in the error, or nil if no API server answered.
func statusOf(err error) *metav1.Status {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return nil
	}
	status := answer.Status()
	return &status
}

// reasonsByCode are the reasons that the HTTP status alone determines.
var reasonsByCode = map[int32]v1alpha1.MigrationFailureReason{
	http.StatusConflict:              v1alpha1.FailureConflict,
	http.StatusNotFound:              v1alpha1.FailureNotFound,
	http.StatusUnprocessableEntity:   v1alpha1.FailureInvalid,
	http.StatusRequestEntityTooLarge: v1alpha1.FailureTooLarge,
	http.StatusForbidden:             v1alpha1.FailureAdmissionDenied,
}

// reasonOf returns the reason for a failed patch. The messages are those of k8s.io/apiserver
// pkg/admission/plugin/webhook/errors, of etcd, and of k8s.io/apiextensions-apiserver
// pkg/apiserver/conversion.
func reasonOf(err error) v1alpha1.MigrationFailureReason {
	status := statusOf(err)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return v1alpha1.FailureNamespaceTerminating
	case status != nil && tooLargeForEtcd.MatchString(status.Message):
		return v1alpha1.FailureTooLarge
	case infrastructure(err):
		return v1alpha1.FailureUnavailable
	case strings.Contains(status.Message, "conversion webhook for "):
		return v1alpha1.FailureConversionFailed
	case denied.MatchString(status.Message):
		return v1alpha1.FailureAdmissionDenied
	}
	if reason, ok := reasonsByCode[status.Code]; ok {
		return reason
	}
	return v1alpha1.FailureRefused
}

var (
	// denied matches admission webhooks and admission policies. Some of these answer with the
	// status of a schema violation.
	denied          = regexp.MustCompile(`denied (the )?request(: | without explanation)`)
	tooLargeForEtcd = regexp.MustCompile(`etcdserver: request is too large|trying to send message larger than max`)
	// unanswered matches the 500 of an unavailable webhook or etcd, and of a converter that is not
	// reached: a proxy may answer instead, with something else than a ConversionReview. Errors of the
	// converter itself follow "failed:" without these words.
	unanswered = regexp.MustCompile(`failed calling webhook|etcdserver: |` +
		`conversion webhook for .* failed: (Post "|an error on the server|the server |couldn't get version/kind|converting \(|no kind ")`)
)

// infrastructure reports whether an error does not concern the object: the API server, etcd or a
// webhook is unavailable or overloaded.
func infrastructure(err error) bool {
	status := statusOf(err)
	switch {
	case status == nil || errors.Is(err, errManagedFieldsDropped):
		return true
	case status.Code == http.StatusInternalServerError:
		return unanswered.MatchString(status.Message) && !tooLargeForEtcd.MatchString(status.Message)
	}
	return remedies[status.Code] == awaitServer
}

// suggest returns a command that shows the fault.
func (e *Engine) suggest(reason v1alpha1.MigrationFailureReason, object *metav1.PartialObjectMetadata) string {
	target := fmt.Sprintf("%s.%s.%s %s", e.Resource.Resource, e.Resource.Version, e.Resource.Group, object.Name)
	if object.Namespace != "" {
		target += " --namespace " + object.Namespace
	}
	switch reason {
	case v1alpha1.FailureNamespaceTerminating:
		return "kubectl get namespace " + object.Namespace + " --output yaml"
	case v1alpha1.FailureConflict, v1alpha1.FailureNotFound:
		return "kubectl get " + target + " --watch --output yaml --show-managed-fields"
	case v1alpha1.FailureTooLarge:
		return "kubectl get " + target + " --output json --show-managed-fields | wc --bytes"
	case v1alpha1.FailureConversionFailed, v1alpha1.FailureUnreadable, v1alpha1.FailureDoesNotFit:
		return "kubectl get " + target + " --output yaml"
	}
	return "kubectl patch " + target + " --type merge --patch '{}' --dry-run=server"
}
