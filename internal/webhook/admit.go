// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// AdmitPath is a path prefix. Followed by the hash of a ruleset, it answers a POST of an
// AdmissionReview by that ruleset. It denies objects that could not be read completely at another
// version.
const AdmitPath = "/admit"

// Admitter is a Converter that also decides which objects may be stored.
type Admitter interface {
	// Admit returns why an object must not be stored, or nil. The error is shown to the client that
	// writes the object. Admit must be safe for concurrent use. It calls stop as Converter.Answer does.
	Admit(object []byte, stop func(memory int64) bool) error
	// AdmitDeletion is Admit for the deletion of an object. waits is true if the deletion adds a
	// finalizer, so that the object remains until that is removed.
	AdmitDeletion(object []byte, waits bool, stop func(memory int64) bool) error
}

// admissionRequest is what the server needs of the request of an AdmissionReview. Everything else is skipped, and
// not decoded.
type admissionRequest struct {
	uid, operation, namespace, name string
	// object and oldObject are nil if there is none.
	object, oldObject []byte
	// waits reports whether the options of a deletion add a finalizer.
	waits bool
}

// admit checks the object of a request. A request may have no object: for the deletion of a
// collection, API servers send one more request per object.
func (r *admissionRequest) admit(admitter Admitter, stop func(memory int64) bool) error {
	switch {
	case r.operation == string(admissionv1.Delete) && r.oldObject != nil:
		return admitter.AdmitDeletion(r.oldObject, r.waits, stop)
	case r.object == nil:
		return nil
	}
	return admitter.Admit(r.object, stop)
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
	x := h.newExchange(r.Context())
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
	defer x.endWork()
	request, err := readAdmission(x.in)
	if err != nil {
		return nil, admissionFailed, &refusal{http.StatusBadRequest, failureInvalidReview, fmt.Sprintf("not a usable AdmissionReview: %s", err)}
	}
	if x.claim.held > 0 {
		if refused := x.name(request.namespace, request.name); refused != nil {
			return nil, admissionFailed, refused
		}
	}
	if refused := x.beginWork(r.Context()); refused != nil {
		return nil, admissionFailed, refused
	}
	result, err = x.decide(r.Context(), request)
	switch {
	case x.refused != nil:
		return nil, admissionFailed, x.refused
	case result == admissionFailed:
		return nil, result, failedAdmission(err)
	}
	return answerAdmission(request.uid, err), result, nil
}

func readAdmission(body []byte) (*admissionRequest, error) {
	var kind, apiVersion string
	request := &admissionRequest{}
	end, err := tree.Walk(body, 0, func(member string, pos int) (int, error) {
		switch member {
		case "kind":
			return copyText(body, pos, &kind)
		case "apiVersion":
			return copyText(body, pos, &apiVersion)
		case "request":
			return tree.Walk(body, pos, func(member string, pos int) (int, error) { return request.read(body, member, pos) })
		}
		return tree.Skip(body, pos)
	})
	if err == nil {
		err = tree.End(body, end)
	}
	switch want := admissionv1.SchemeGroupVersion.String(); {
	case err != nil:
		return nil, err
	case kind != "AdmissionReview" || apiVersion != want:
		return nil, fmt.Errorf("it is %q of %q, not AdmissionReview of %s: correct admissionReviewVersions of the webhook configuration", kind, apiVersion, want)
	case request.uid == "":
		return nil, errors.New("request.uid is missing")
	}
	return request, nil
}

// read reads a member of the request.
func (r *admissionRequest) read(body []byte, member string, pos int) (end int, err error) {
	switch member {
	case "uid":
		return copyText(body, pos, &r.uid)
	case "operation":
		return copyText(body, pos, &r.operation)
	case "namespace":
		return copyText(body, pos, &r.namespace)
	case "name":
		return copyText(body, pos, &r.name)
	case "options":
		return tree.Walk(body, pos, func(member string, pos int) (int, error) { return r.readOption(body, member, pos) })
	}
	if end, err = tree.Skip(body, pos); err != nil || body[pos] == 'n' {
		return end, err
	}
	switch member {
	case "object":
		r.object = body[pos:end:end]
	case "oldObject":
		r.oldObject = body[pos:end:end]
	}
	return end, nil
}

// readOption reads a member of DeleteOptions.
func (r *admissionRequest) readOption(body []byte, member string, pos int) (end int, err error) {
	text, end, err := textAt(body, pos)
	switch {
	case err != nil:
	case member == "propagationPolicy":
		policy := metav1.DeletionPropagation(text)
		r.waits = r.waits || policy != "" && policy != metav1.DeletePropagationBackground
	case member == "orphanDependents": // clients may still send it
		r.waits = r.waits || string(body[pos:end]) == "true"
	}
	return end, err
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
	case errors.Is(err, conversion.ErrStopped) && x.tooMuch:
		err = errTooMuch
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

func answerAdmission(uid string, cause error) *admissionv1.AdmissionReview {
	answer := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: admissionv1.SchemeGroupVersion.String()},
		Response: &admissionv1.AdmissionResponse{UID: types.UID(uid), Allowed: cause == nil},
	}
	if cause != nil {
		answer.Response.Result = &metav1.Status{
			Status: metav1.StatusFailure, Message: cause.Error(), Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		}
	}
	return answer
}
