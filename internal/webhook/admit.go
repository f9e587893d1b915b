// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// AdmitPath is where, with one segment behind it, a pod answers a POST of an AdmissionReview by the
// ruleset whose hash the segment is: it refuses objects that could not be read as a
// whole at another version.
const AdmitPath = "/admit"

// Admitter is a Converter that knows which objects must not be stored.
type Admitter interface {
	// Admit says why an object must not be stored, nil if it may. Its error is shown
	// to the client that writes the object. It is called from many goroutines at once. Now and
	// then it asks whether to stop, and then gives up, with conversion.ErrStopped.
	Admit(object []byte, stop func() bool) error
	// AdmitDeletion is Admit for an object that is to be deleted. Waits tells that it
	// stays until a finalizer is gone that the deletion itself adds.
	AdmitDeletion(object []byte, waits bool) error
}

// admissionReview is what is read of an AdmissionReview.
type admissionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *admissionRequest `json:"request"`
}

type admissionRequest struct {
	UID       types.UID             `json:"uid"`
	Operation admissionv1.Operation `json:"operation"`
	Object    json.RawMessage       `json:"object"`
	OldObject json.RawMessage       `json:"oldObject"`
	// Options are DeleteOptions, of a deletion.
	Options metav1.DeleteOptions `json:"options"`
}

// ask asks about the object of a request. There may be none: of a collection that is
// deleted, each object is asked about by itself.
func (r *admissionRequest) ask(admitter Admitter, stop func() bool) error {
	absent := func(object []byte) bool { return len(object) == 0 || bytes.Equal(object, []byte("null")) }
	switch {
	case r.Operation == admissionv1.Delete && !absent(r.OldObject):
		policy := ptr.Deref(r.Options.PropagationPolicy, metav1.DeletePropagationBackground)
		return admitter.AdmitDeletion(r.OldObject, policy != metav1.DeletePropagationBackground || ptr.Deref(r.Options.OrphanDependents, false)) //nolint:staticcheck // clients may still send it
	case absent(r.Object):
		return nil
	}
	return admitter.Admit(r.Object, stop)
}

// admission is what an AdmissionReview came to: a label value.
type admission string

const (
	admitted         admission = "admitted"
	refusedTruncated admission = "refused_shortened"
	refusedTooLarge  admission = "refused_too_large"
	refusedOther     admission = "refused_other"
	admissionFailed  admission = "failed"
)

var admissions = []admission{admitted, refusedTruncated, refusedTooLarge, refusedOther, admissionFailed}

// admit answers an AdmissionReview.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request, hash string) {
	x := h.newExchange()
	h.metrics.inFlight.Inc()
	defer x.release()
	answer, came, refused := x.admit(r, hash)
	h.metrics.admissions[came].Inc()
	if refused != nil {
		x.failure = refused.failure
		refuse(w, refused)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

func (x *exchange) admit(r *http.Request, hash string) (answer *admissionv1.AdmissionReview, came admission, refused *refusal) {
	if refused := x.choose(hash); refused != nil {
		return nil, admissionFailed, refused
	}
	if refused := x.receive(r); refused != nil {
		return nil, admissionFailed, refused
	}
	review, err := readAdmission(x.in)
	if err != nil {
		return nil, admissionFailed, &refusal{http.StatusBadRequest, failureInvalidReview, fmt.Sprintf("not a usable AdmissionReview: %s", err)}
	}
	came, err = x.decide(r.Context(), review.Request)
	if came == admissionFailed {
		return nil, came, failedAdmission(err)
	}
	return answerAdmission(review.Request.UID, err), came, nil
}

func readAdmission(body []byte) (*admissionReview, error) {
	review := &admissionReview{}
	if err := json.Unmarshal(body, review); err != nil {
		return nil, err
	}
	switch own := admissionv1.SchemeGroupVersion.String(); {
	case review.Kind != "AdmissionReview" || review.APIVersion != own:
		return nil, fmt.Errorf("it is %q of %q, not AdmissionReview of %s: correct admissionReviewVersions of the webhook configuration", review.Kind, review.APIVersion, own)
	case review.Request == nil || review.Request.UID == "":
		return nil, errors.New("request.uid is missing")
	}
	return review, nil
}

// decide asks the converter, and tells what it came to.
func (x *exchange) decide(ctx context.Context, request *admissionRequest) (came admission, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			x.handler.options.Log.Error(fmt.Errorf("panic: %v", cause), "Admission panicked", "stack", string(debug.Stack()))
			// A converter that panicked may still hold on to what it was given.
			x.failure, came, err = failurePanic, admissionFailed, errPanic
		}
	}()
	x.ctx = ctx
	admitter, able := x.converter.(Admitter)
	if !able {
		return admitted, nil
	}
	err = request.ask(admitter, x.stop)
	switch {
	case err == nil:
		return admitted, nil
	case errors.Is(err, conversion.ErrStopped) || x.gone():
		return admissionFailed, errGone
	}
	x.handler.options.Log.V(1).Info("Write refused", "error", err.Error())
	if _, truncated := errors.AsType[*conversion.TruncatedError](err); truncated {
		return refusedTruncated, err
	}
	if _, large := errors.AsType[*conversion.TooLargeError](err); large {
		return refusedTooLarge, err
	}
	return refusedOther, fmt.Errorf("the object could not be read at another version: %w", err)
}

func failedAdmission(cause error) *refusal {
	if errors.Is(cause, errPanic) {
		return &refusal{http.StatusInternalServerError, failurePanic, cause.Error()}
	}
	return &refusal{http.StatusRequestTimeout, failureCanceled, cause.Error()}
}

func answerAdmission(uid types.UID, cause error) *admissionv1.AdmissionReview {
	answer := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: admissionv1.SchemeGroupVersion.String()},
		Response: &admissionv1.AdmissionResponse{UID: uid, Allowed: cause == nil},
	}
	if cause != nil {
		answer.Response.Result = &metav1.Status{
			Status: metav1.StatusFailure, Message: cause.Error(), Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		}
	}
	return answer
}
