// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
)

const (
	// userAgent names the reader in audit logs.
	userAgent = "conversion-operator-dependents"
	// fieldManager names the author of repairs in metadata.managedFields.
	fieldManager = "conversion-operator-dependents"
	// requestTimeout bounds one request: an aggregated API server may not answer.
	requestTimeout = time.Minute
)

// Options of a search.
type Options struct {
	// CRD is the name of the definition.
	CRD string
	// Versions go; none for all except the storage version.
	Versions []string
	// Also are further resources whose objects are read completely, such as pipelines.tekton.dev.
	Also []string
	// Helm reads the release records of Helm.
	Helm bool
	// Repair changes ownerReferences and release records. DryRun asks the API server whether it
	// would accept that.
	Repair, DryRun bool
	// QPS limits the requests per second, after a burst of five seconds.
	QPS float32
	// PageSize is the most objects in memory.
	PageSize int64
	// Most is the number of dependents, and of repairs, that the report names.
	Most int
	// Record receives each repair as a line of JSON, at once; nil for none.
	Record io.Writer
	// Progress receives what is being read, and the number of objects that were read.
	Progress func(what string, objects int64)
}

// search is one search in one cluster.
type search struct {
	Options
	target   *dependents.Target
	report   *dependents.Report
	metadata metadata.Interface
	dynamic  dynamic.Interface
	api      discovery.DiscoveryInterface
	managers *dependents.Managers
	requests atomic.Int64
	bytes    atomic.Int64
}

// Find returns the dependents of versions of a definition, and repairs them if options say so. It
// returns an error if there cannot be any result, and an incomplete report with an error if a
// repair cannot be recorded.
func Find(ctx context.Context, config *rest.Config, options Options) (*dependents.Target, *dependents.Report, error) {
	s := &search{Options: options}
	if err := s.connect(config); err != nil {
		return nil, nil, err
	}
	if err := s.readTarget(ctx); err != nil {
		return nil, nil, err
	}
	resources, err := s.resources()
	if err != nil {
		return nil, nil, err
	}
	if err = s.scan(ctx, resources); err == nil {
		s.configuration(ctx, resources)
		err = s.helm(ctx)
	}
	s.add(s.managers.Dependents())
	s.report.More += s.managers.Others
	s.report.Cost.Requests, s.report.Cost.Bytes = s.requests.Load(), s.bytes.Load()
	s.report.Finish()
	return s.target, s.report, err
}

func (s *search) connect(config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	// One limiter for all clients. The burst is enough for a cluster with few objects.
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(s.QPS, max(1, int(5*s.QPS)))
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.Timeout = requestTimeout
	config.Wrap(s.count)
	pages.Bound(config)
	var errs [3]error
	s.metadata, errs[0] = metadata.NewForConfig(config)
	s.dynamic, errs[1] = dynamic.NewForConfig(config)
	s.api, errs[2] = discovery.NewDiscoveryClientForConfig(config)
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	return nil
}

// readTarget reads the definition.
func (s *search) readTarget(ctx context.Context) error {
	definitions := s.dynamic.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	object, err := definitions.Get(ctx, s.CRD, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the cluster has no CustomResourceDefinition %s: name it <plural>.<group>, for example crontabs.example.com", s.CRD)
	}
	if err != nil {
		return fmt.Errorf("read CustomResourceDefinition %s: %w", s.CRD, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
		return fmt.Errorf("decode CustomResourceDefinition %s: %w", s.CRD, err)
	}
	if s.target, err = dependents.NewTarget(crd, s.Versions); err != nil {
		return err
	}
	s.managers = s.target.Managers()
	s.report = &dependents.Report{Format: dependents.ReportFormat, CRD: s.CRD, To: s.target.To, Dependents: []dependents.Dependent{}}
	s.add(s.target.Contracts(crd))
	return nil
}

// notChecked records what could not be read.
func (s *search) notChecked(what string, err error) {
	s.report.NotChecked = append(s.report.NotChecked, dependents.NotChecked{What: what, Why: err.Error()})
}

// record stores a repair in the report and in the record.
func (s *search) record(repair dependents.Repair) error {
	repair.DryRun = s.DryRun
	if len(s.report.Repairs) < s.Most || repair.Failure != "" {
		s.report.Repairs = append(s.report.Repairs, repair)
	} else {
		s.report.MoreRepairs++
	}
	if s.Record == nil {
		return nil
	}
	if err := json.NewEncoder(s.Record).Encode(repair); err != nil {
		return fmt.Errorf("write the record of repairs, which stop: %w", err)
	}
	return nil
}

// count counts requests, and the bytes of answers.
func (s *search) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		s.requests.Add(1)
		response, err := next.RoundTrip(request)
		if err == nil {
			response.Body = &countedBody{response.Body, &s.bytes}
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

type countedBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (b *countedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.bytes.Add(int64(n))
	return n, err
}
