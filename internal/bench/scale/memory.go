// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/bench/pod"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// scrapes is how often /metrics of each pod is read: Prometheus does so twice a minute.
const scrapes = 20

// memory measures the pods at rest, and after each has converted objects of all kinds, so that all
// metrics exist, and was scraped.
func (s *suite) memory(ctx context.Context, name string, converting []*apiextensionsv1.CustomResourceDefinition) error {
	pods := s.nodes.running()
	s.tell("measuring %d converter pods", len(pods))
	s.add(name, s.pods(), float64(len(pods)), "pods")
	if err := s.memoryOf(name, "", pods); err != nil {
		return err
	}
	for _, crd := range converting {
		if err := s.convert(ctx, crd); err != nil {
			return err
		}
	}
	if err := s.memoryOf(name, ", each kind converted", pods); err != nil {
		return err
	}
	for _, p := range pods {
		for range scrapes {
			if err := pod.Get(ctx, http.DefaultClient, fmt.Sprintf("http://localhost:%d/metrics", p.metrics)); err != nil {
				return fmt.Errorf("scrape %s: %w", p.name, err)
			}
		}
	}
	return s.memoryOf(name, ", metrics scraped", pods)
}

// pods is the name of the pods as a subject.
func (s *suite) pods() string {
	if s.OwnPods {
		return "pods of their own"
	}
	return "pods of the fleet"
}

// memoryOf adds the memory of the largest pod, and of all together.
func (s *suite) memoryOf(name, when string, pods []*runningPod) error {
	var most, peak, sum, private float64
	for _, p := range pods {
		memory, err := p.Memory()
		if err != nil {
			return err
		}
		most, peak, sum = max(most, memory.Resident), max(peak, memory.Peak), sum+memory.Resident
		private += memory.Anonymous
	}
	subject := s.pods() + when
	s.add(name, subject, most, "MiB resident, largest")
	s.add(name, subject, peak, "MiB at the peak, largest")
	s.add(name, subject, sum, "MiB resident, all together")
	s.add(name, subject, private, "MiB of it anonymous")
	return nil
}

// convert has each pod of a CRD's converter convert an object with all fields, in both directions.
func (s *suite) convert(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	current := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.cluster.client.Get(ctx, client.ObjectKeyFromObject(crd), current); err != nil {
		return err
	}
	return s.convertBy(ctx, crd, current)
}

// convertBy does so with a CRD, and with the same one in the cluster.
func (s *suite) convertBy(ctx context.Context, crd, current *apiextensionsv1.CustomResourceDefinition) error {
	service := current.Spec.Conversion.Webhook.ClientConfig.Service
	for _, p := range s.nodes.of(service.Name) {
		caller := p.caller(current.Spec.Conversion.Webhook.ClientConfig.CABundle, service.Name)
		for from, to := range map[string]string{oldVersion: newVersion, newVersion: oldVersion} {
			if err := review(ctx, caller, fmt.Sprintf("https://localhost:%d%s", p.Port, *service.Path), crds.FilledCanary(crd, from), crd.Spec.Group+"/"+to); err != nil {
				return fmt.Errorf("pod %s, %s: %w", p.name, crd.Name, err)
			}
		}
	}
	return nil
}

// caller connects to a pod once, like an API server.
func (p *runningPod) caller(caBundle []byte, service string) *http.Client {
	if p.client == nil {
		trust := pod.Trusting(caBundle)
		trust.ServerName = names.ServiceName(service, system)
		p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}}
	}
	return p.client
}

// review has one object converted.
func review(ctx context.Context, caller *http.Client, url string, object []byte, desired string) error {
	text, err := json.Marshal(apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{Kind: "ConversionReview", APIVersion: apiextensionsv1.SchemeGroupVersion.String()},
		Request:  &apiextensionsv1.ConversionRequest{UID: "bench", DesiredAPIVersion: desired, Objects: []runtime.RawExtension{{Raw: object}}},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := caller.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer apiextensionsv1.ConversionReview
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Response == nil || answer.Response.Result.Status != metav1.StatusSuccess {
		return fmt.Errorf("the conversion failed: %+v", answer.Response)
	}
	return nil
}

// rest measures an idle process twice: the first time it may still have something to do.
func (s *suite) rest(ctx context.Context, p *process, name, subject string) error {
	s.tell("%s is left alone for %s, twice", subject, s.Rest)
	if _, _, err := p.rest(ctx, s.Rest); err != nil {
		return err
	}
	memory, cpu, err := p.rest(ctx, s.Rest)
	s.add(name, subject, memory.Resident, "MiB resident")
	s.add(name, subject, memory.Anonymous, "MiB of it anonymous")
	s.add(name, subject, memory.Peak, "MiB at the peak")
	s.add(name, subject, measure.In(time.Millisecond, cpu), "ms CPU in a minute at rest")
	return err
}
