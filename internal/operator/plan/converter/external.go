// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
)

// externalAgain is the time between two checks of a converter that users run. No event reports
// its state.
const externalAgain = 30 * time.Second

// external is the kind of a converter that users run, behind a Service or at a URL.
type external struct {
	*Converter
	// at is its client configuration without caBundle, and called its name in messages.
	at       apiextensionsv1.WebhookClientConfig
	called   string
	versions []v1alpha1.ReviewVersion
}

func newExternal(c *Converter, spec *v1alpha1.Converter) external {
	e := external{Converter: c, versions: spec.ConversionReviewVersions}
	if service := spec.Service; service != nil {
		e.called = fmt.Sprintf("Service %s/%s", service.Namespace, service.Name)
		e.at.Service = &apiextensionsv1.ServiceReference{
			Namespace: service.Namespace, Name: service.Name, Path: new(string(service.Path)), Port: new(service.Port)}
	} else {
		e.called = string(spec.URL.URL)
		e.at.URL = new(e.called)
	}
	return e
}

func (e external) choose()  { e.Wanted = identityOf(&e.at) }
func (e external) prepare() {}

func (e external) client() (*apiextensionsv1.WebhookClientConfig, []string) {
	return e.at.DeepCopy(), reviewVersions(e.versions)
}

func (e external) endpoints() []observed.Pod { return e.External.Endpoints }

func (external) serves(observed.Pod) bool { return true }

func (e external) answered(endpoints int) string {
	return fmt.Sprintf("%s answered over TLS at %d endpoints", e.called, endpoints)
}

func (external) howToReplace() (hint string, evicts bool) {
	return "its owner must fix or remove it", false
}

func (e external) name(pod observed.Pod) string { return "endpoint " + pod.Name + " of " + e.called }

func (e external) deployment() *appsv1apply.DeploymentApplyConfiguration { return nil }

func (e external) valid([]string) gate.Outcome { return e.withoutRules(e.called, "") }

// available passes if there is an endpoint to call.
func (e external) available() gate.Outcome {
	e.work.Add(e.DropUnused())
	e.work.Recheck(externalAgain)
	var ready int32
	for _, endpoint := range e.External.Endpoints {
		if endpoint.Ready {
			ready++
		}
	}
	e.reportPods(int32(len(e.External.Endpoints)), ready) //nolint:gosec // a Service has not that many endpoints
	switch {
	case e.External.Reason != "":
		e.work.Recheck(observed.ProbeAgain)
		return gate.Waiting(e.External.Reason, e.External.Message+e.Meanwhile())
	case ready == 0:
		e.work.Recheck(observed.ProbeAgain)
		return gate.Waiting(v1alpha1.ReasonRollingOut, e.called+" has no ready endpoint: check the pods that it selects"+e.Meanwhile())
	}
	if e.at.URL != nil {
		return gate.Passed(v1alpha1.ReasonAvailable, e.called+" is outside the cluster: the next gate verifies it")
	}
	return gate.Passed(v1alpha1.ReasonAvailable, fmt.Sprintf("%s has %d ready endpoints", e.called, ready))
}

func reviewVersions(versions []v1alpha1.ReviewVersion) []string {
	reviews := make([]string, 0, len(versions))
	for _, version := range versions {
		reviews = append(reviews, string(version))
	}
	return reviews
}

// identityOf is the identity of a converter that users run, the hash of its address. Defaults
// of the API server do not change it.
func identityOf(client *apiextensionsv1.WebhookClientConfig) string {
	var where any = ptr.Deref(client.URL, "")
	if service := client.Service; service != nil {
		where = []any{service.Namespace, service.Name, ptr.Deref(service.Path, ""), ptr.Deref(service.Port, workload.ServicePort)}
	}
	text, _ := json.Marshal(where) // cannot fail, of strings and a number
	return names.Hash(string(text))[:identityLength]
}
