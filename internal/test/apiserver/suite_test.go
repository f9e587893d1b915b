//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	clientset "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// patience is for an API server to follow a change, on a machine that has much to do.
const patience = 2 * time.Minute

// apiServer is a real API server and the etcd behind it.
type apiServer struct {
	config *rest.Config
	// cached tells that it has a watch cache.
	cached  bool
	crds    clientset.CustomResourceDefinitionInterface
	objects dynamic.Interface
	etcd    *clientv3.Client
}

// scenarios is what is played on every API server.
var scenarios = map[string]func(*testing.T, *apiServer){
	"versions are read as they were written": testVersions,
	"versions are served and not served":     testServed,
	"watchers see their own version":         testWatch,
	"fields and labels select":               testSelectors,
	"labels and annotations":                 testLabels,
	"metadata is never touched":              testMetadata,
	"kept data is input":                     testForged,
	"unknown fields are pruned":              testPruning,
	"defaults of versions and of rules":      testDefaults,
	"values of all forms":                    testForms,
	"null where it may be and may not":       testNullable,
	"rules and schemas change":               testChanges,
	"a schema evolves for a year":            testYear,
	"validation of the version in use":       testValidation,
	"the status of every version":            testStatus,
	"preserved status is metadata":           testPreservedStatus,
	"preserved status and manifests":         testPreservedStatusManifests,
	"preserved status is held by admission":  testPreservedStatusHeld,
	"the scale of every version":             testScale,
	"printer columns":                        testTables,
	"the converter is down":                  testDown,
	"too much to keep aside":                 testOverflow,
	"too much to keep aside, to be dropped":  testOverflowDrop,
	"shortened, stored at the hub":           testShortened,
	"shortened, storage moves":               testShortenedFlip,
	"shortened, stored at a spoke":           testShortenedSpoke,
	"rules compute":                          testRules,
	"edits win":                              testEdits,
	"a version without rules":                testUnknownVersion,
	"managers apply at many versions":        testApply,
	"kept data is applied":                   testApplyKept,
	"a spec is emptied by applying":          testApplyEmptied,
	"next to nothing is applied":             testApplyPartial,
	"managers update at many versions":       testUpdateManagers,
	"rules fill no applied fragment":         testApplyDefaults,
	"a version that managers used goes away": testRetiredVersion,
	"the definition is deleted":              testDeleteDefinition,
	"a namespace is emptied":                 testDeleteCollection,
	"old clients lose nothing":               testOldClients,
	"one object in a review":                 testReviews,
	"API servers tell of themselves":         testOwnMetrics,
}

// atOnce is how many scenarios are played at once. They wait more than they work:
// for two seconds after it is defined, a kind's objects are not created.
const atOnce = "8"

func TestMain(m *testing.M) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "KUBEBUILDER_ASSETS is not set: run make integration")
		os.Exit(1)
	}
	log.SetLogger(logr.Discard())
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err) // the testing package has that flag
	}
	os.Exit(m.Run())
}

func TestWithWatchCache(t *testing.T) {
	t.Parallel()
	playAll(t, true)
}

func TestWithoutWatchCache(t *testing.T) {
	t.Parallel()
	playAll(t, false)
}

func playAll(t *testing.T, cached bool) {
	server := start(t, cached)
	for name, play := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, server)
		})
	}
}

func start(t *testing.T, cached bool) *apiServer {
	t.Helper()
	environment := &envtest.Environment{}
	arguments := environment.ControlPlane.GetAPIServer().Configure()
	if !cached {
		arguments.Set("watch-cache", "false")
	}
	config, err := environment.Start()
	must(t, err)
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	server := &apiServer{config: config, cached: cached}
	crds, err := clientset.NewForConfig(config)
	must(t, err)
	server.crds = crds.CustomResourceDefinitions()
	server.objects, err = dynamic.NewForConfig(config)
	must(t, err)
	server.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{environment.ControlPlane.Etcd.URL.String()}})
	must(t, err)
	t.Cleanup(func() { _ = server.etcd.Close() })
	return server
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually looks until it is so, and fails with what was last said. A look that the
// end of the time interrupts says nothing.
func eventually(t *testing.T, what string, so func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := so(ctx)
		if last == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("waited in vain: %s: %v", what, last)
	}
}
