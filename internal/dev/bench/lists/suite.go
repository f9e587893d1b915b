// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lists measures what conversions add to lists of an API server: of the same objects with
// strategy None, with the handler of a converter pod, and with controller-runtime's webhook.
//
// Lists are read from etcd, so that every object is converted: with its watch cache, an API server has
// converted each object once when it answers. API server and etcd are processes; the webhooks are in this
// one, which does not decode what it reads.
package lists

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/dev/bench/cluster"
	"github.com/conversion-operator/conversion-operator/internal/dev/bench/converters"
	"github.com/conversion-operator/conversion-operator/internal/dev/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// Each kind is listed in turn, so often, or less if that takes longer than enough.
const (
	mostRounds, fewestRounds = 9, 2
	enough                   = 15 * time.Second
)

// Suite sets the size of the objects in KiB, and the number of objects in a list.
type Suite struct{ size, count int }

// Flags defines the flags of the suite.
func (s *Suite) Flags(flags *flag.FlagSet) {
	flags.IntVar(&s.size, "size", 10, "size of an object, in KiB")
	flags.IntVar(&s.count, "count", 1000, "number of objects in a list")
}

// The versions of the kind: objects are stored at one, and listed at the other.
const storedVersion, otherVersion = "v1", "v2"

// kind is a subject: a kind with its conversion, and its lists.
type kind struct {
	subject, group string
	// webhook makes the handler that converts; nil for strategy None.
	webhook func(group string) (http.Handler, error)
	client  *rest.RESTClient
	crd     *apiextensionsv1.CustomResourceDefinition
	// spans are the times of its lists, and bytes those of one.
	spans []time.Duration
	bytes int
}

// none is the subject that ratios refer to.
const none = "strategy None"

// Run measures.
func (s *Suite) Run(ctx context.Context, results *measure.Results) (err error) {
	if s.size < 1 || s.count < 1 {
		return errors.New("-size and -count must be at least 1")
	}
	results.Tell("starting a kube-apiserver")
	// All objects are stored three times.
	server, err := testenv.Start(testenv.Options{NoWatchCache: true, EtcdArguments: cluster.Quota})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	config := rest.CopyConfig(server.Kubeconfig)
	config.DisableCompression = true // compressing is not part of a conversion
	config.NegotiatedSerializer = clientgoscheme.Codecs
	reader, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return err
	}
	kinds := []*kind{
		{subject: none, group: "none.example.com", client: reader},
		{subject: converters.Ours, group: "ours.example.com", client: reader, webhook: converters.NewOurs},
		{subject: converters.Typed, group: "typed.example.com", client: reader, webhook: converters.NewTyped},
	}
	for _, k := range kinds {
		results.Tell("%s: creating %d objects of %d KB", k.subject, s.count, s.size)
		stop, err := k.define(ctx, server)
		defer stop()
		if err == nil {
			err = converters.Create(ctx, server.Kubeconfig, k.crd, s.count, s.size<<10)
		}
		if err == nil {
			err = k.check(ctx, s.count)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k.subject, err)
		}
	}
	results.Tell("listing them")
	began := time.Now()
	for round := 0; round < fewestRounds || round < mostRounds && time.Since(began) < enough; round++ {
		for _, k := range kinds {
			span, err := k.list(ctx, otherVersion, s.count, io.Discard)
			if err != nil {
				return err
			}
			k.spans = append(k.spans, span)
		}
	}
	add(results, fmt.Sprintf("LIST from etcd at the other version, %d KB x %d", s.size, s.count), s.count, kinds)
	return nil
}

// define starts the webhook of a kind, creates the CRD, and waits until both versions are served. Without
// a webhook, both have the same schema: objects are pruned by none.
func (k *kind) define(ctx context.Context, server *testenv.Server) (stop func(), err error) {
	stop, k.crd = func() {}, converters.Definition(k.group)
	if k.webhook == nil {
		k.crd.Spec.Versions[1].Schema = k.crd.Spec.Versions[0].Schema
	} else {
		handler, err := k.webhook(k.group)
		if err != nil {
			return stop, err
		}
		webhook := httptest.NewUnstartedServer(handler)
		webhook.EnableHTTP2 = true
		webhook.StartTLS()
		stop = webhook.Close
		k.crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig: &apiextensionsv1.WebhookClientConfig{
					URL: new(webhook.URL + converters.Path), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})},
				ConversionReviewVersions: []string{"v1"},
			},
		}
	}
	if err := server.Client.Create(ctx, k.crd); err != nil {
		return stop, err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, stored := k.list(ctx, storedVersion, 1, io.Discard)
		_, other := k.list(ctx, otherVersion, 1, io.Discard)
		last = errors.Join(stored, other)
		return last == nil, nil
	})
	if err != nil {
		err = errors.Join(err, last)
	}
	return stop, err
}

// list reads the first objects of a kind, and returns the time for it.
func (k *kind) list(ctx context.Context, version string, count int, to io.Writer) (time.Duration, error) {
	request := k.client.Get().AbsPath("apis", k.group, version, "namespaces", scenarios.Namespace, k.crd.Spec.Names.Plural).
		Param("limit", strconv.Itoa(count)).SetHeader("Accept", "application/json")
	began := time.Now()
	answer, err := request.Stream(ctx)
	if err != nil {
		return 0, err
	}
	defer answer.Close()
	_, err = io.Copy(to, answer)
	return time.Since(began), err
}

// check returns an error unless a list has all objects, all of them converted if they should be: only v2
// has spec.runtime.
func (k *kind) check(ctx context.Context, count int) error {
	var text bytes.Buffer
	_, err := k.list(ctx, otherVersion, count, &text)
	want := 0
	if k.webhook != nil {
		want = count
	}
	k.bytes = text.Len()
	if names, found := bytes.Count(text.Bytes(), []byte(`"name":"task-`)), bytes.Count(text.Bytes(), []byte(`"runtime":{`)); err == nil && (names != count || found != want) {
		err = fmt.Errorf("of %d objects, %d are converted; want %d of %d", names, found, want, count)
	}
	return err
}

// add adds the times, with the time that each conversion adds to strategy None.
func add(results *measure.Results, name string, count int, kinds []*kind) {
	added, fastest := map[string]time.Duration{}, map[string]time.Duration{}
	for _, k := range kinds {
		fastest[k.subject] = measure.Quantile(k.spans, 0)
		added[k.subject] = fastest[k.subject] - fastest[none]
	}
	for _, k := range kinds {
		extra := added[k.subject]
		results.Add(name, k.subject, float64(k.bytes)/float64(count)/1024, "KB/object")
		results.Add(name, k.subject, measure.In(time.Millisecond, fastest[k.subject]), "ms")
		results.Add(name, k.subject, measure.In(time.Millisecond, measure.Quantile(k.spans, 0.5)), "ms, median")
		results.Add(name, k.subject, measure.In(fastest[none], fastest[k.subject]), "times strategy None")
		if k.subject == none {
			continue
		}
		results.Add(name, k.subject, measure.In(time.Microsecond, extra)/float64(count), "us added/object")
		if extra > 0 && added[converters.Typed] > 0 { // else the difference is noise
			results.Add(name, k.subject, measure.In(extra, added[converters.Typed]), "controller-runtime adds times as much")
		}
	}
}
