// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"io"
	"testing"

	"github.com/dapr/dapr/pkg/apis/subscriptions/v1alpha1"
	"github.com/dapr/dapr/pkg/apis/subscriptions/v2alpha1"
	"github.com/datawire/dlib/dlog"
	v2 "github.com/emissary-ingress/emissary/v3/pkg/api/getambassador.io/v2"
	"github.com/emissary-ingress/emissary/v3/pkg/api/getambassador.io/v3alpha1"
	"github.com/sirupsen/logrus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// mark is before each ambassador_id of v3alpha1 in v2.
const mark = "--apiVersion-v3alpha1-only--"

// TestTracingService: Emissary-ingress' v3alpha1.
func TestTracingService(t *testing.T) {
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	dlog.SetFallbackLogger(dlog.WrapLogrus(silent))
	p := kind[v2.TracingService, v3alpha1.TracingService]("emissary-tracingservices", "github.com/emissary-ingress/emissary/v3", "manifests/emissary/emissary-crds.yaml.in")
	// ambassador_id is a text or a list in v2, which its schema leaves open.
	p.adapt = func(crd *apiextensionsv1.CustomResourceDefinition) {
		spec := func(version int) apiextensionsv1.JSONSchemaProps {
			return crd.Spec.Versions[version].Schema.OpenAPIV3Schema.Properties["spec"]
		}
		open := spec(1)
		open.XPreserveUnknownFields = nil
		open.Properties["ambassador_id"] = spec(2).Properties["ambassador_id"]
		crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"] = open
	}
	const marked = "theirs marks each ambassador_id of v3alpha1 in v2, and adds the default; ours copies it"
	p.differences = []difference{
		{"v2", ".spec.ambassador_id", onlyTheirs, marked},
		{"v2", ".spec.ambassador_id[*]", func(theirs, ours any) bool { return theirs == mark+ours.(string) }, marked},
	}
	p.check(t)
}

// TestSubscription: Dapr's v2alpha1. Its functions are those of v2alpha1, whose hub is v1alpha1.
func TestSubscription(t *testing.T) {
	p := kind[v1alpha1.Subscription, v2alpha1.Subscription]("dapr-subscriptions", "github.com/dapr/dapr", "charts/dapr/crds/subscription.yaml")
	p.check(t)
}
