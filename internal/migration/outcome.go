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
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// outcome is how the run leaves one object.
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
	reason  string
	message string
	command string
	// edited is set when the patch changed more than the encoding: an admission
	// webhook edits objects as they are written.
	edited bool
	// after is the object as the API server answered, if it did.
	after *metav1.PartialObjectMetadata
	// counted tells that held is what the object holds in annotations.
	counted   bool
	preserved []conversion.Preserved
	// placed tells that a value that it held has become data, and refused are the
	// versions at which that is not possible.
	placed  bool
	refused []v1alpha1.MigrationFailure
	// path is how the API server accepted the object in the end, if it refused it
	// at the storage version.
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

// tooLarge is an object that has no whole form at the storage version.
func (e *Engine) tooLarge(object *metav1.PartialObjectMetadata, cause error) result {
	return result{object: keyOf(object), outcome: failed, reason: ReasonTooLarge, message: cause.Error(), command: e.suggest(ReasonTooLarge, object)}
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

// proof compares an object before and after a patch. The API server stores a
// patched object only if its bytes differ, and the version that the object is
// encoded in is among them.
func proof(before, after *metav1.PartialObjectMetadata) result {
	r := resultOf(before, rewritten)
	if before.ResourceVersion == after.ResourceVersion {
		r.outcome = current
	}
	r.after, r.edited = after, edited(before, after)
	return r
}

// edited tells from an object's metadata whether its content changed, too. The
// fields that a webhook sets enter managedFields.
func edited(before, after *metav1.PartialObjectMetadata) bool {
	was, is := before.ObjectMeta.DeepCopy(), after.ObjectMeta.DeepCopy()
	was.ResourceVersion, is.ResourceVersion = "", ""
	return !equality.Semantic.DeepEqual(was, is)
}

// newer reports whether the object was written after the barrier. A
// resourceVersion that cannot be compared proves nothing.
func newer(object *metav1.PartialObjectMetadata, barrier string) bool {
	order, err := resourceversion.CompareResourceVersion(object.ResourceVersion, barrier)
	return err == nil && order > 0
}

// remedy is what a refused patch calls for.
type remedy int

const (
	// giveUp lists the object as failed: the API server would refuse it again.
	giveUp remedy = iota
	// tryAgain later: a converter or an admission webhook may recover.
	tryAgain
	// awaitServer before another try: the fault may not be the object's.
	awaitServer
	// refetch at the object: it was written or deleted meanwhile.
	refetch
	// stopRun: no object can be patched this way.
	stopRun
	// restartPod: no object can be patched until the pod has its rights back.
	restartPod
)

// remedies by HTTP status. A failed conversion is a plain 500, as are admission
// webhooks that do not answer. 422, 413, a 403 of admission, and all others are
// the object's.
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

// remedyFor says what the error of a patch of the named object calls for.
func remedyFor(err error, name string) remedy {
	status := statusOf(err)
	switch {
	case status == nil:
		return awaitServer
	case status.Code == http.StatusNotFound && !names(err, status, name):
		return stopRun
	case status.Code == http.StatusForbidden && withoutRights.MatchString(status.Message):
		return restartPod
	case tooLargeForEtcd.MatchString(status.Message):
		return giveUp
	}
	return remedies[status.Code]
}

// withoutRights matches the API server's answer to a user who may not patch the
// resource. Admission, which refuses one object, says it in other words. From
// k8s.io/apiserver pkg/endpoints/handlers/responsewriters/errors.go,
// forbiddenMessage.
var withoutRights = regexp.MustCompile(`^\S+( "[^"]*")? is forbidden: User "[^"]*" cannot patch resource "`)

// names tells the API server's "object not found" from the 404 of an endpoint
// that does not exist, which client-go dresses up as a NotFound, too.
func names(err error, status *metav1.Status, name string) bool {
	return status.Reason == metav1.StatusReasonNotFound &&
		status.Details != nil && status.Details.Name == name &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// transient errors may pass by themselves: the connection failed, or the API
// server is overloaded, starting, or has trouble with etcd or a webhook.
func transient(err error) bool {
	status := statusOf(err)
	if status == nil {
		return true
	}
	r := remedies[status.Code]
	return r == awaitServer || r == tryAgain
}

// statusOf returns the API server's answer, or nil if there was none.
func statusOf(err error) *metav1.Status {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return nil
	}
	status := answer.Status()
	return &status
}

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

// reasonsByCode are the reasons that follow from the HTTP status alone.
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
	case status == nil || errors.Is(err, errManagedFieldsDropped):
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
