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

// ConversionProbe is a kind of the operator, by which it checks that an API server reaches a
// converter. Its objects are created as dry runs only: to return the result, the API server
// converts the object to the storage version and back.
const (
	// Definition is the name of its CustomResourceDefinition.
	Definition = "conversionprobes." + webhook.ProbeGroup

	requestVersion = "v1"
)

// Resource is the resource of ConversionProbes.
var Resource = schema.GroupVersionResource{Group: webhook.ProbeGroup, Version: requestVersion, Resource: "conversionprobes"}

// ProbeRequest returns the object to create as a dry run.
func ProbeRequest() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": webhook.ProbeGroup + "/" + requestVersion,
		"kind":       webhook.ProbeKind,
		"metadata":   map[string]any{"name": "is-the-converter-reached"},
		"spec":       map[string]any{"text": "a: \"b\" \u00e9\n", "number": int64(9007199254740993)},
	}}
}

// Answered reports whether a converter has converted the object, by any ruleset.
func Answered(answer *unstructured.Unstructured) bool { return mark(answer) != "" }

func mark(answer *unstructured.Unstructured) string {
	ruleset, _, _ := unstructured.NestedString(answer.Object, "spec", webhook.ProbeMark)
	return ruleset
}

// CheckAnswer returns an *Error if the answer is not that of the expected ruleset, or nil.
func CheckAnswer(answer *unstructured.Unstructured, rulesetHash string) error {
	if got := mark(answer); got != rulesetHash {
		return failf(ReasonWrongRuleset, "the API server's call was answered by ruleset %s, not %s", quote(got), quote(rulesetHash))
	}
	want, got := ProbeRequest().Object["spec"], answer.DeepCopy().Object["spec"]
	if spec, ok := got.(map[string]any); ok {
		delete(spec, webhook.ProbeMark)
	}
	if found := difference(".spec", want, got, false); found != "" {
		return failf(ReasonCanaryFailed, "an object that the API server had converted there and back is not the same: %s", found)
	}
	return nil
}

const (
	hintFirewall = "the API server's call gets no answer: check that no firewall, security group or NetworkPolicy keeps the control plane from the converter pods; " +
		"private control planes often reach nodes at few ports only"
	hintRoute = "the API server has no way to the converter: check the network between the control plane and the Service"
)

// causes of failed calls, by the messages of API servers and their libraries:
// k8s.io/apiserver/pkg/util/webhook, k8s.io/apiserver/pkg/util/proxy, net/http and net.
var causes = []struct {
	message *regexp.Regexp
	reason  Reason
	hint    string
}{
	// Kubernetes 1.32 looks for Endpoints, later versions for EndpointSlices.
	{regexp.MustCompile(`no endpoints available|no service port|(service|endpoints) ".*" not found`), ReasonUnreachable,
		"check the Service, and that the converter pods are ready"},
	{regexp.MustCompile(`x509:|tls:.*certificate`), ReasonTLSVerificationFailed,
		"the API server does not accept the certificate that answered: something between the two may end TLS"},
	{regexp.MustCompile(`deadline exceeded|timeout|timed out|Client\.Timeout`), ReasonUnreachable, hintFirewall},
	{regexp.MustCompile(`connection refused`), ReasonUnreachable, "nothing listens where the API server's call ends"},
	{regexp.MustCompile(`no route to host|network is unreachable|no such host|connection reset|Address is not allowed|EOF$`), ReasonUnreachable, hintRoute},
	{regexp.MustCompile(`could not find the requested resource`), ReasonUnexpectedAnswer,
		"something else than the converter answered with HTTP status 404: check what the Service leads to"},
}

// CallFailed returns an *Error for the error of the API server. It keeps the text of the API
// server, without the parts that vary.
func CallFailed(err error) error {
	reason, text, hint := CauseOf(err)
	if hint != "" {
		hint = ": " + hint
	}
	return failf(reason, "%s%s", text, hint)
}

// CauseOf returns why a call failed, by the error of the API server: its text, without the parts
// that vary, and a hint what to check if the cause is known.
func CauseOf(err error) (reason Reason, text, hint string) {
	text = bounded(stable(messageOf(err)))
	for _, cause := range causes {
		if cause.message.MatchString(text) {
			return cause.reason, text, cause.hint
		}
	}
	return ReasonUnexpectedAnswer, text, ""
}

// CalledWebhook reports whether an error comes from the call of a webhook, and not from the request
// itself.
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
	localPort   = regexp.MustCompile(`(read|write) tcp \S+->`)
	currentTime = regexp.MustCompile(`current time \S+ is (after|before) (\S+)`)
	timeoutArg  = regexp.MustCompile(`\?timeout=\d+s`)
)

// stable removes the parts of a text that vary, because it is shown in a condition.
func stable(text string) string {
	text = localPort.ReplaceAllString(text, "$1 tcp ")
	text = currentTime.ReplaceAllString(text, "now is $1 $2")
	return timeoutArg.ReplaceAllString(text, "")
}

// DidNotFollow returns the error of an API server that still uses the previous definition.
func DidNotFollow(name string) error {
	return failf(ReasonUnreachable, "the API server did not take note of spec.conversion of the CustomResourceDefinition %s in time", name)
}

// NoAnswer returns the error of an API server that still waits for the converter.
func NoAnswer(after time.Duration) error {
	return failf(ReasonUnreachable, "no answer within %s: %s", after, hintFirewall)
}

// Refused reports whether a converter was reached and answered in a ConversionReview that it does
// not convert the object.
func Refused(err error) bool {
	failure, ok := errors.AsType[*Error](err)
	return ok && failure.Reason == ReasonUnexpectedAnswer && !httpFailure.MatchString(failure.Message)
}

// httpFailure matches the errors of API servers for calls without an answer, and for answers that are
// no ConversionReview: net/url.Error, NewGenericServerResponse of k8s.io/apimachinery/pkg/api/errors,
// and decoding.
var httpFailure = regexp.MustCompile(`failed: Post "|the server|an error on the server|the body of the request|expected webhook response|expected response\.uid|no response provided|couldn't get|no kind "ConversionReview"|unknown conversion|unable to decode|invalid character|json:`)
