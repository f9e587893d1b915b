// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// kind is one kind of converter. Each type of spec.converter has one.
type kind interface {
	// choose determines the identity of the desired converter. The CustomResourceDefinition
	// exists.
	choose()
	// prepare renders the objects to deploy, after the served revisions are known.
	prepare()
	// valid is the gate RulesValid. A retirement has removed these versions.
	valid(removed []string) gate.Outcome
	// available is the gate WebhookAvailable.
	available() gate.Outcome
	// client is the client configuration of the desired converter without caBundle, and the
	// versions of ConversionReview that it supports.
	client() (*apiextensionsv1.WebhookClientConfig, []string)
	// endpoints serve the certificate. They are pods of the operator, or what answers for a
	// converter that users run.
	endpoints() []observed.Pod
	// serves reports whether an endpoint is one of the wanted converter.
	serves(endpoint observed.Pod) bool
	// name of an endpoint in messages.
	name(endpoint observed.Pod) string
	// answered says in a message that as many endpoints have answered.
	answered(endpoints int) string
	// howToReplace says how users can replace an endpoint that answers incorrectly. Evicts
	// tells that the operator can do that itself.
	howToReplace() (hint string, evicts bool)
	// deployment runs its pods; nil if the operator runs none.
	deployment() *appsv1apply.DeploymentApplyConfiguration
}

func (c *Converter) newKind() kind {
	switch converter := c.Policy.Spec.Converter.WithDefaults(); converter.Type {
	case v1alpha1.ConverterImage:
		return image{pods{c}, converter.Image, converter.ConversionReviewVersions}
	case v1alpha1.ConverterService, v1alpha1.ConverterURL:
		return newExternal(c, converter)
	case v1alpha1.ConverterNone:
		return none{pods{c}}
	}
	if c.Fleet() != "" {
		return shared{rules{pods{c}}}
	}
	return rules{pods{c}}
}

// Valid is the gate RulesValid: the policy can be followed. The policy may still have
// rules for versions that a retirement has removed.
func (c *Converter) Valid(removed []string) gate.Decision { return c.work.Decide(c.valid(removed)) }

// Available is the gate WebhookAvailable: endpoints of the converter are ready.
func (c *Converter) Available() gate.Decision { return c.work.Decide(c.kind.available()) }

func (c *Converter) valid(removed []string) gate.Outcome {
	switch {
	case c.CRD == nil:
		return gate.Unknown(v1alpha1.ReasonNotFound, fmt.Sprintf(
			"CustomResourceDefinition %q does not exist: create it, or give the policy the name <plural>.<group> of one that exists", c.Policy.Name))
	case !c.CRD.DeletionTimestamp.IsZero() && !c.EverActive:
		return gate.Unknown(v1alpha1.ReasonCRDTerminating,
			"the CustomResourceDefinition is being deleted: the operator changes nothing")
	}
	c.kind.prepare()
	valid := c.kind.valid(removed)
	if !valid.Stop {
		valid.Message = strings.TrimPrefix(valid.Message+c.PreferredLacks(), "; ")
	}
	return valid
}

// PreferredLacks says what clients do not find that name no version, although another served version has it.
// It begins with a semicolon, and is empty if there is nothing.
func (c *Converter) PreferredLacks() string {
	if breaking := crds.Breaking(crds.PreferredLacks(c.CRD)); breaking != "" {
		return "; " + breaking
	}
	return ""
}

// withoutRules is the gate RulesValid of a converter that has no rules to compile. The gate
// ConversionVerified tests its answers.
func (c *Converter) withoutRules(name, revision string) gate.Outcome {
	if c.CRD.Spec.PreserveUnknownFields {
		return gate.Stalled(v1alpha1.ReasonPreserveUnknownFields,
			"the CustomResourceDefinition has spec.preserveUnknownFields: true, and API servers do not convert objects without a structural schema: "+
				"set it to false, and give each version a structural schema")
	}
	c.Status.Revision = revision
	return gate.Passed(v1alpha1.ReasonValid, "the converter is "+name)
}

// pods are the converter pods of the operator.
type pods struct{ *Converter }

func (p pods) endpoints() []observed.Pod { return p.PodsOf(p.Fleet()) }

func (p pods) serves(pod observed.Pod) bool { return slices.Contains(pod.Revisions, p.Wanted) }

func (p pods) answered(pods int) string {
	return fmt.Sprintf("%d converter pods answered over TLS", pods)
}

// noPodReady is the outcome if no pod of a Deployment is ready.
func (p pods) noPodReady(deployment string) gate.Outcome {
	return gate.Waiting(v1alpha1.ReasonNoPodsReady, fmt.Sprintf(
		"no converter pod is ready: objects that need a conversion cannot be read; see the pods of Deployment %s/%s",
		p.Settings.Namespace, deployment)+p.troubles())
}

// podsReady is the outcome if enough pods are ready for conversions to work.
func (p pods) podsReady(ready, desired int32) gate.Outcome {
	says := fmt.Sprintf("%d of %d converter pods are ready", ready, desired)
	if ready < desired {
		return gate.Passed(v1alpha1.ReasonSomePodsReady, says+": conversions work with reduced redundancy"+p.troubles())
	}
	return gate.Passed(v1alpha1.ReasonAvailable, says+p.troubles())
}

func (p pods) howToReplace() (hint string, evicts bool) {
	return fmt.Sprintf("see the log of the pods, and restart them with kubectl -n %s rollout restart deployment %s",
		p.Settings.Namespace, p.podsName()), true
}

func (p pods) name(pod observed.Pod) string { return "converter pod " + pod.Name }
