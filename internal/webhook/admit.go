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

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// AdmitPath is a path prefix. Followed by the hash of a ruleset, it answers a POST of an
// AdmissionReview by that ruleset. It denies objects that could not be read completely at another
// version.
const AdmitPath = "/admit"

// Admitter is a Converter that also decides which objects may be stored.
type Admitter interface {
	// Admit returns why an object must not be stored, or nil. The error is shown to the client that
	// writes the object. Admit must be safe for concurrent use. A long check calls stop from time
	// to time; when stop returns true, Admit returns conversion.ErrStopped.
	Admit(object []byte, stop func() bool) error
	// AdmitDeletion is Admit for the deletion of an object. waits is true if the deletion adds a
	// finalizer, so that the object remains until that is removed.
	AdmitDeletion(object []byte, waits bool) error
}

// admissionReview has the fields of an AdmissionReview that the server reads.
type admissionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *admissionRequest `json:"request"`
}

type admissionRequest struct {
	UID       types.UID             `json:"uid"`
	Operation admissionv1.Operation `json:"operation"`
	Object    json.RawMessage       `json:"object"`
	OldObject json.RawMessage       `json:"oldObject"`
	// Options are the DeleteOptions of a deletion.
	Options metav1.DeleteOptions `json:"options"`
}

// admit checks the object of a request. A request may have no object: for the deletion of a
// collection, API servers send one more request per object.
func (r *admissionRequest) admit(admitter Admitter, stop func() bool) error {
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

// admissionResult is the result of an AdmissionReview: a label value.
type admissionResult string

const (
	admitted         admissionResult = "admitted"
	refusedTruncated admissionResult = "refused_truncated"
	refusedTooLarge  admissionResult = "refused_too_large"
	refusedOther     admissionResult = "refused_other"
	admissionFailed  admissionResult = "failed"
)

var admissionResults = []admissionResult{admitted, refusedTruncated, refusedTooLarge, refusedOther, admissionFailed}

// admit answers an AdmissionReview.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request, hash string) {
	x := h.newExchange()
	defer x.release()
	answer, result, refused := x.admit(r, hash)
	x.kind.metrics.admissions[result].Add(1)
	if refused != nil {
		x.failure = refused.failure
		refuse(w, refused)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

func (x *exchange) admit(r *http.Request, hash string) (answer *admissionv1.AdmissionReview, result admissionResult, refused *refusal) {
	if refused := x.selectRuleset(hash, r.UserAgent()); refused != nil {
		return nil, admissionFailed, refused
	}
	if refused := x.readBody(r); refused != nil {
		return nil, admissionFailed, refused
	}
	if refused := x.beginWork(r.Context()); refused != nil {
		return nil, admissionFailed, refused
	}
	defer x.endWork()
	review, err := readAdmission(x.in)
	if err != nil {
		return nil, admissionFailed, &refusal{http.StatusBadRequest, failureInvalidReview, fmt.Sprintf("not a usable AdmissionReview: %s", err)}
	}
	result, err = x.decide(r.Context(), review.Request)
	if result == admissionFailed {
		return nil, result, failedAdmission(err)
	}
	return answerAdmission(review.Request.UID, err), result, nil
}

func readAdmission(body []byte) (*admissionReview, error) {
	review := &admissionReview{}
	if err := json.Unmarshal(body, review); err != nil {
		return nil, err
	}
	switch want := admissionv1.SchemeGroupVersion.String(); {
	case review.Kind != "AdmissionReview" || review.APIVersion != want:
		return nil, fmt.Errorf("it is %q of %q, not AdmissionReview of %s: correct admissionReviewVersions of the webhook configuration", review.Kind, review.APIVersion, want)
	case review.Request == nil || review.Request.UID == "":
		return nil, errors.New("request.uid is missing")
	}
	return review, nil
}

// decide asks the converter, and returns the result.
func (x *exchange) decide(ctx context.Context, request *admissionRequest) (result admissionResult, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			x.log().Error(fmt.Errorf("panic: %v", cause), "Admission panicked", "stack", string(debug.Stack()))
			// A converter that panicked may still use the buffers.
			x.failure, result, err = failurePanic, admissionFailed, errPanic
		}
	}()
	x.ctx = ctx
	admitter, ok := x.converter.(Admitter)
	if !ok {
		return admitted, nil
	}
	err = request.admit(admitter, x.stop)
	switch {
	case err == nil:
		return admitted, nil
	case errors.Is(err, conversion.ErrStopped) || x.abandoned():
		return admissionFailed, errAbandoned
	}
	x.log().V(1).Info("Write refused", "error", err.Error())
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
