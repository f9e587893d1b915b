// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// The kind of the operator's own, by which an API server is asked whether it
// reaches a converter. Its objects are created in dry runs only: to tell what it
// would store, the API server converts the object to the version that is stored,
// and back.
const (
	// Definition is the name of its CustomResourceDefinition.
	Definition = "conversionprobes." + webhook.ProbeGroup

	asked = "v1"
)

// Resource is where to create a Question.
var Resource = schema.GroupVersionResource{Group: webhook.ProbeGroup, Version: asked, Resource: "conversionprobes"}

// ReasonNoEndpoints means that nothing stands behind the Service.
const ReasonNoEndpoints Reason = "NoEndpoints"

// ProbeRequest is the object to create in a dry run.
func ProbeRequest() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": webhook.ProbeGroup + "/" + asked,
		"kind":       webhook.ProbeKind,
		"metadata":   map[string]any{"name": "is-the-converter-reached"},
		"spec":       map[string]any{"text": "a: \"b\" \u00e9\n", "number": int64(9007199254740993)},
	}}
}

// Answered reports whether a converter has had its hands on an answer, by
// whatever ruleset.
func Answered(answer *unstructured.Unstructured) bool { return mark(answer) != "" }

func mark(answer *unstructured.Unstructured) string {
	ruleset, _, _ := unstructured.NestedString(answer.Object, "spec", webhook.ProbeMark)
	return ruleset
}

// CheckAnswer says what is wrong with the answer of a converter that was asked by
// a ruleset, in an *Error, or nil.
func CheckAnswer(answer *unstructured.Unstructured, rulesetHash string) error {
	if got := mark(answer); got != rulesetHash {
		return failf(ReasonWrongRuleset, "the API server's call was answered by ruleset %s, not %s", quote(got), quote(rulesetHash))
	}
	want, got := ProbeRequest().Object["spec"], answer.DeepCopy().Object["spec"]
	if spec, ok := got.(map[string]any); ok {
		delete(spec, webhook.ProbeMark)
	}
	if found := difference(".spec", want, got); found != "" {
		return failf(ReasonCanaryFailed, "an object that the API server had converted there and back is not the same: %s", found)
	}
	return nil
}

const (
	hintFirewall = "the API server's call gets no answer: check that no firewall, security group or NetworkPolicy keeps the control plane from the converter pods; " +
		"private control planes often reach nodes at few ports only"
	hintRoute = "the API server has no way to the converter: check the network between the control plane and the Service"
)

// causes of a call that failed, by what API servers and their libraries say:
// k8s.io/apiserver/pkg/util/webhook, k8s.io/apiserver/pkg/util/proxy, net/http and net.
var causes = []struct {
	says   *regexp.Regexp
	reason Reason
	hint   string
}{
	{regexp.MustCompile(`no endpoints available|no service port|service ".*" not found`), ReasonNoEndpoints,
		"check the Service, and that the converter pods are ready"},
	{regexp.MustCompile(`x509:|tls:.*certificate`), ReasonTLSVerificationFailed,
		"the API server does not accept the certificate that answered: something between the two may end TLS"},
	{regexp.MustCompile(`deadline exceeded|timeout|timed out|Client\.Timeout`), ReasonTimeout, hintFirewall},
	{regexp.MustCompile(`connection refused`), ReasonConnectionRefused, "nothing listens where the API server's call ends"},
	{regexp.MustCompile(`no route to host|network is unreachable|no such host|connection reset|Address is not allowed|EOF$`), ReasonUnreachable, hintRoute},
	{regexp.MustCompile(`could not find the requested resource`), ReasonUnexpectedAnswer,
		"something else than the converter answered with HTTP status 404: check what the Service leads to"},
}

// CallFailed makes an *Error of what the API server said when it was asked the
// Question. It keeps the API server's own text, without what differs each time.
func CallFailed(err error) error {
	reason, text, hint := CauseOf(err)
	if hint != "" {
		hint = ": " + hint
	}
	return failf(reason, "%s%s", text, hint)
}

// CauseOf tells why a call failed, by what the API server said: its own text,
// without what differs each time, and where one is known, what to look at.
func CauseOf(err error) (reason Reason, text, hint string) {
	text = bounded(lasting(messageOf(err)))
	for _, cause := range causes {
		if cause.says.MatchString(text) {
			return cause.reason, text, cause.hint
		}
	}
	return ReasonUnexpectedAnswer, text, ""
}

// CalledWebhook reports whether an error is about the call of a webhook, and not
// about the request for it.
func CalledWebhook(err error) bool {
	return strings.Contains(messageOf(err), "conversion webhook for ")
}

func messageOf(err error) string {
	text := err.Error()
	if status, ok := err.(apierrors.APIStatus); ok {
		text = status.Status().Message
	}
	if _, cause, found := strings.Cut(text, "conversion webhook for "); found {
		return "conversion webhook for " + cause
	}
	return text
}

var (
	ownPort     = regexp.MustCompile(`(read|write) tcp \S+->`)
	currentTime = regexp.MustCompile(`current time \S+ is (after|before) (\S+)`)
	timeoutArg  = regexp.MustCompile(`\?timeout=\d+s`)
)

// lasting takes out of a text what is another one each time: it is shown in a
// condition.
func lasting(text string) string {
	text = ownPort.ReplaceAllString(text, "$1 tcp ")
	text = currentTime.ReplaceAllString(text, "now is $1 $2")
	return timeoutArg.ReplaceAllString(text, "")
}

// DidNotFollow is the failure of an API server that went on as if its definition
// had not changed.
func DidNotFollow(name string) error {
	return failf(ReasonTimeout, "the API server did not take note of spec.conversion of the CustomResourceDefinition %s in time", name)
}

// NoAnswer is the failure of an API server that still waits for the converter.
func NoAnswer(after time.Duration) error {
	return failf(ReasonTimeout, "no answer within %s: %s", after, hintFirewall)
}

// Refused reports whether a converter was reached, and said in a ConversionReview
// that it does not convert what it was asked for.
func Refused(err error) bool {
	failure, ok := errors.AsType[*Error](err)
	return ok && failure.Reason == ReasonUnexpectedAnswer && !httpFailure.MatchString(failure.Message)
}

// httpFailure is how API servers call an answer that is no ConversionReview:
// k8s.io/apimachinery/pkg/api/errors, NewGenericServerResponse, and decoding.
var httpFailure = regexp.MustCompile(`the server|an error on the server|the body of the request|expected webhook response|expected response\.uid|no response provided|couldn't get|no kind "ConversionReview"|unable to decode|invalid character|json:`)
